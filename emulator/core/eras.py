"""All eras, those of KRaft clusters and those of ZooKeeper clusters, and their rules by name.

``switches`` has the rules of every cluster; a ZooKeeper cluster has additional rules (``zookeeper.rules``) and a
protocol version. ``ZooKeeperSwitches`` is a ``Switches``, so code that reads only the common rules accepts it.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Final

import msgspec

from laststand.emulator.core.errors import ConfigError
from laststand.emulator.core.quorum_rules import QuorumRules
from laststand.emulator.core.switches import (
    ERAS,
    Switches,
    era_switches,
    is_switch,
    switch_choices,
    switch_texts,
    with_switch,
)
from laststand.emulator.core.types import BrokerId, ClusterKind
from laststand.emulator.core.zookeeper.inter_broker_protocol import (
    LATEST,
    PROPERTY,
    VERSIONS,
    IbpLevel,
    InterBrokerProtocol,
    IsrChange,
    format_ibps,
    ibp_level,
    parse_ibps,
)
from laststand.emulator.core.zookeeper.rules import ZOOKEEPER_ERAS, AlterIsrChecks, ZooKeeperRules


class ZooKeeperSwitches(Switches, frozen=True, kw_only=True):
    """The rules of a ZooKeeper cluster: the switches, ZooKeeper's own rules, and the brokers' protocol version.

    Attributes:
        zookeeper: the rules of ZooKeeper clusters only.
        ibp: the protocol version of every broker that is not in ``other_ibps``.
        other_ibps: protocol versions of single brokers, ascending by id, as during a rolling upgrade.
    """

    zookeeper: ZooKeeperRules = ZooKeeperRules()
    ibp: IbpLevel = LATEST
    other_ibps: tuple[tuple[BrokerId, IbpLevel], ...] = ()

    @property
    def kind(self) -> ClusterKind:
        """The kind of cluster that follows these rules."""
        return ClusterKind.ZOOKEEPER

    @property
    def protocol(self) -> InterBrokerProtocol:
        """The protocol version that every broker sends and writes, unless one has its own."""
        return self.zookeeper.protocol(self.ibp)

    def protocol_of(self, broker_id: BrokerId, *, started_with: IbpLevel | None = None) -> InterBrokerProtocol:
        """Returns the protocol that a broker sends and writes: ``started_with``, if it was started with one."""
        level = dict(self.other_ibps).get(broker_id, self.ibp) if started_with is None else started_with
        return self.zookeeper.protocol(level)


ALL_ERAS: Final = (*ERAS, *ZOOKEEPER_ERAS)
"""Every era that the simulator plays."""

_QUORUM_RULES: Final = frozenset(QuorumRules.__struct_fields__)

ZOOKEEPER_RULES: Final = tuple(ZooKeeperRules.__struct_fields__)


def era_rules(era: str) -> Switches:
    """Returns the rules of an era; for a ZooKeeper era, a ``ZooKeeperSwitches``.

    Raises:
        ConfigError: no such era.
    """
    preset = ZOOKEEPER_ERAS.get(era)
    if preset is not None:
        fields = {name: getattr(preset.switches, name) for name in Switches.__struct_fields__}
        return ZooKeeperSwitches(**fields, zookeeper=preset.rules, ibp=preset.ibp)
    if era not in ERAS:
        raise ConfigError(key="era", value=era, expected="one of " + ", ".join(ALL_ERAS))
    return era_switches(era)


def node_rules(text: str) -> Switches:
    """Returns the rules of a node that is of another era than its cluster.

    Args:
        text: an era, and what the node changes of it: ``kip-966``, or ``kip-966,truncation=kip101,elr=off``.

    Raises:
        ConfigError: unknown era, unknown rule, or not a value of the rule.
    """
    era, *changed = text.split(",")
    rules = era_rules(era)
    for each in changed:
        name, _, value = each.partition("=")
        rules = with_rule(rules, name, value)
    return rules


def era_kind(era: str) -> ClusterKind:
    """Returns the kind of cluster that an era is of."""
    return ClusterKind.ZOOKEEPER if era in ZOOKEEPER_ERAS else ClusterKind.KRAFT


def is_zookeeper_era(era: str) -> bool:
    """Returns whether an era is one of clusters with ZooKeeper."""
    return era_kind(era) is ClusterKind.ZOOKEEPER


def plain_switches(switches: Switches) -> Switches:
    """Returns the switches that every cluster has, without the rules of a ZooKeeper cluster."""
    return Switches(**{name: getattr(switches, name) for name in Switches.__struct_fields__})


def is_rule(name: str) -> bool:
    """Returns whether a name is that of a rule of any cluster, as opposed to a Kafka property."""
    return is_switch(name) or name in ZOOKEEPER_RULES or name == PROPERTY


def with_rule(switches: Switches, name: str, text: str) -> Switches:
    """Returns the rules with one changed, as ``--set name=text`` asks.

    Raises:
        ConfigError: unknown rule, a rule that KRaft clusters do not have, or not a value of the rule.
    """
    if name in _QUORUM_RULES and isinstance(switches, ZooKeeperSwitches):
        raise ConfigError(key=name, value=text, expected="an era without ZooKeeper, whose controllers are a quorum")
    if is_switch(name) or not is_rule(name):
        return with_switch(switches, name, text)
    if not isinstance(switches, ZooKeeperSwitches):
        raise ConfigError(key=name, value=text, expected="a ZooKeeper era: " + ", ".join(ZOOKEEPER_ERAS))
    if name == PROPERTY:
        ibp, others = parse_ibps(text)
        return msgspec.structs.replace(switches, ibp=ibp, other_ibps=others)
    rules = _values(name)
    if text not in rules:
        raise ConfigError(key=name, value=text, expected="one of " + ", ".join(rules))
    return msgspec.structs.replace(
        switches, zookeeper=msgspec.structs.replace(switches.zookeeper, **{name: rules[text]})
    )


def rule_choices(name: str) -> tuple[str, ...]:
    """Returns the values of a rule, as text."""
    if name == PROPERTY:
        return VERSIONS
    return switch_choices(name) if is_switch(name) else tuple(_values(name))


def rule_texts(switches: Switches) -> dict[str, str]:
    """Returns every rule by name as text: ``on``, ``off``, or the name of a value."""
    if not isinstance(switches, ZooKeeperSwitches):
        return switch_texts(switches)
    own = {
        name: {True: "on", False: "off"}.get(value, str(value))
        for name, value in msgspec.to_builtins(switches.zookeeper).items()
    }
    shared = {n: text for n, text in switch_texts(plain_switches(switches)).items() if n not in _QUORUM_RULES}
    return {**shared, **own, PROPERTY: format_ibps(switches.ibp, switches.other_ibps)}


def changes(
    switches: Switches,
    usual: Switches,
    properties: Iterable[tuple[str, str]] = (),
    usual_properties: Iterable[tuple[str, str]] = (),
) -> tuple[str, ...]:
    """Returns the rules and properties that differ from the usual ones, as ``name=value``, by name."""
    expected = {**rule_texts(usual), **dict(usual_properties)}
    found = (*rule_texts(switches).items(), *properties)
    return tuple(sorted(f"{name}={text}" for name, text in found if text != expected.get(name)))


def era_label(era: str | None, changed: Sequence[str]) -> str:
    """Returns a run's label, as shown in place of an era: ``kip-966``, or ``kip-966 with elr=off``.

    Args:
        era: name of the era; ``None`` if the run names none.
        changed: rules and properties that differ from the era's, as ``name=value``.
    """
    name = era or "unnamed era"
    return f"{name} with {', '.join(changed)}" if changed else name


def strange_protocol(switches: Switches, *, brokers: int) -> str | None:
    """Returns a cluster's protocol versions if they name a broker that does not exist, else ``None``."""
    others = switches.other_ibps if isinstance(switches, ZooKeeperSwitches) else ()
    return rule_texts(switches)[PROPERTY] if any(broker_id >= brokers for broker_id, _ in others) else None


def unanswered_protocol(switches: Switches, *, started_with: Iterable[str] = ()) -> str | None:
    """Returns a protocol version that is too new for the release; ``None`` if there is none.

    With such a version, a leader sends AlterIsr (KIP-497), which releases before 2.7 do not support. Kafka's
    ``KafkaConfig`` accepts only versions that its release knows.

    Args:
        switches: the release's rules, with the brokers' first protocol versions.
        started_with: protocol versions with which brokers are started later.
    """
    if not isinstance(switches, ZooKeeperSwitches) or switches.zookeeper.alter_isr_checks is not AlterIsrChecks.NONE:
        return None
    levels = (switches.ibp, *(level for _, level in switches.other_ibps), *map(ibp_level, started_with))
    asking = (level for level in levels if InterBrokerProtocol(level).isr_change is IsrChange.ALTER_PARTITION)
    return next((VERSIONS[level] for level in asking), None)


def _values(name: str) -> Mapping[str, Enum | bool]:
    default = getattr(ZooKeeperRules(), name)
    if isinstance(default, Enum):
        return {member.value: member for member in type(default)}
    return {"on": True, "off": False}
