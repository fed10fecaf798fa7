"""Vectors about brokers: every kind with its handler."""

from collections.abc import Mapping
from typing import Final

from tests.conformance import (
    broker_controller_kinds,
    broker_log_kinds,
    broker_node_kinds,
    broker_partition_kinds,
    broker_request_kinds,
    reconcile_kind,
    recovering_kind,
    stray_kip550_kind,
    stray_kraft_kind,
)
from tests.conformance.harness import Handler

KINDS: Final[Mapping[str, Handler]] = {
    **broker_partition_kinds.KINDS,
    **broker_request_kinds.KINDS,
    **broker_log_kinds.KINDS,
    **broker_node_kinds.KINDS,
    **broker_controller_kinds.KINDS,
    **reconcile_kind.KINDS,
    **recovering_kind.KINDS,
    **stray_kip550_kind.KINDS,
    **stray_kraft_kind.KINDS,
}
