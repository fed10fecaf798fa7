"""Every handler by kind, from one module per subsystem."""

import importlib.util
from importlib import import_module
from typing import Final

from tests.conformance.harness import Handler

_MODULES: Final = (
    "controller_kinds",
    "controller_broker_kinds",
    "broker_kinds",
    "storage_kinds",
    "recovery_kind",
    "unclean_choice_kind",
    "zookeeper_node_kinds",
    "zookeeper_controller_kinds",
    "zookeeper_broker_kinds",
    "group_kinds",
    "transaction_log_kinds",
    "transaction_kinds",
    "quorum_kinds",
    "quorum_rule_kinds",
    "quorum_controller_kinds",
)


def _collect() -> dict[str, Handler]:
    kinds: dict[str, Handler] = {}
    for name in _MODULES:
        path = f"tests.conformance.{name}"
        if importlib.util.find_spec(path) is None:
            continue
        handlers: dict[str, Handler] = import_module(path).KINDS
        twice = sorted(kinds.keys() & handlers.keys())
        if twice:
            raise ValueError(f"{path} registers {twice} again")
        kinds.update(handlers)
    return kinds


KINDS: Final = _collect()
