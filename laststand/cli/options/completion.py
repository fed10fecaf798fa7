"""Completion by the tab key; ``laststand completion`` prints the script for a shell.

A function here returns every candidate that begins with the typed text. It must neither print nor fail: if a cluster
does not answer, there are no candidates.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
from click.shell_completion import CompletionItem

from laststand.emulator.core.errors import EmulatorError

if TYPE_CHECKING:
    from laststand.chaos.standing.status import StatusReport

_ROLES: Final = ("leader", "follower", "last-isr", "elr")


def complete_eras(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Offers eras."""
    from laststand.emulator.core.eras import ALL_ERAS

    return _offer(ALL_ERAS, typed)


def complete_kraft_eras(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Offers the eras without ZooKeeper."""
    from laststand.emulator.core.switches import ERAS

    return _offer(ERAS, typed)


def complete_settings(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Offers switches and properties with an equals sign, and the values of a switch behind one."""
    from laststand.emulator.core.eras import ZOOKEEPER_RULES, is_rule, rule_choices
    from laststand.emulator.core.properties import NodeProperties
    from laststand.emulator.core.switches import Switches

    key, equals, _ = typed.partition("=")
    if equals and is_rule(key):
        return _offer((f"{key}={value}" for value in rule_choices(key)), typed)
    properties = (field.replace("_", ".") for field in NodeProperties.__struct_fields__)
    return _offer((f"{name}=" for name in (*Switches.__struct_fields__, *ZOOKEEPER_RULES, *properties)), typed)


def complete_scenarios(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Offers the bundled scenarios, and files."""
    from laststand.chaos.scenario.scenario_file import scenario_names

    return _offer(scenario_names(), typed) or [CompletionItem(typed, type="file")]


def complete_profiles(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Offers the kinds of schedules."""
    from laststand.emulator.simulator.profiles.profiles import ALL_PROFILES

    return _offer(ALL_PROFILES, typed)


def complete_kraft_profiles(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Offers the kinds of schedules of clusters without ZooKeeper."""
    from laststand.emulator.simulator.profiles.profiles import PROFILES

    return _offer(PROFILES, typed)


def complete_clusters(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Offers the names of clusters in the store, and directories."""
    from laststand.chaos.standing.link import DEFAULT_STORE
    from laststand.chaos.standing.listing import list_clusters

    names = {cluster.name for cluster in list_clusters(DEFAULT_STORE) if cluster.name is not None}
    return _offer(sorted(names), typed) or [CompletionItem(typed, type="dir")]


def complete_topics(context: click.Context, _parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Offers the topics of the cluster that the command is about."""
    report = _report(context)
    return [] if report is None else _offer(dict.fromkeys(each.topic for each in report.partitions), typed)


def complete_partitions(context: click.Context, _parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Offers the partitions of the cluster that the command is about."""
    report = _report(context)
    return [] if report is None else _offer((f"{each.topic}-{each.partition}" for each in report.partitions), typed)


def complete_nodes(context: click.Context, _parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Offers the nodes of the command's cluster, and the roles that they may have."""
    report = _report(context)
    if report is None:
        return []
    brokers = [str(node.node_id) for node in report.nodes if node.role == "broker"]
    roles = (f"{role}({each.topic}-{each.partition})" for role in _ROLES for each in report.partitions)
    return _offer((*brokers, "controller", *roles), typed)


def _report(context: click.Context) -> "StatusReport | None":
    from laststand.chaos.standing import messages
    from laststand.chaos.standing.link import DEFAULT_STORE, ask, find_standing

    place = context.params.get("place") or context.params.get("option_place") or DEFAULT_STORE
    try:
        answers = list(ask(find_standing(Path(place)), messages.GetStatus()))
    except (EmulatorError, OSError):
        return None
    return next((answer.report for answer in answers if isinstance(answer, messages.Status)), None)


def _offer(candidates: Iterable[str], typed: str) -> list[CompletionItem]:
    return [CompletionItem(each) for each in candidates if each.startswith(typed)]
