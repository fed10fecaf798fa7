"""Mutants of the rules of ZooKeeper clusters, and what the simulator is expected to find; rows as in ``mutants``.

A rule is searched in the latest release, and in ``kip-550-zk`` where that has another value than the release.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from laststand.emulator.core.eras import ZOOKEEPER_RULES, era_rules, rule_choices, rule_texts
from laststand.emulator.core.zookeeper.inter_broker_protocol import PROPERTY
from laststand.emulator.verification.verdict.report import Verdict
from tests.simulation.mutants import MUTANTS, Harmless, Lethal, Mutant, Row

RELEASE: Final = "kafka-3.9-zk"
LETTER: Final = "kip-550-zk"

_COMPARED: Final = (
    "what it does not look at is caught by the compare-and-set on the node's version, or is a member that is dead, for "
    "which the high watermark waits"
)
_TOLD_OR_ANSWERED: Final = "until it is told of its new ISR, a leader counts on the larger one"
_NEVER_TOLD: Final = (
    "a released leader takes no LeaderAndIsr of an epoch that it has: after its first change it asks for no other "
    "before an election, and counts on the larger ISR"
)
_ANSWERED_LATE: Final = (
    "what is answered is written, and nothing is acknowledged that a controller may never write: zookeeper/"
    "acknowledged-and-never-written does not come to that; the leader counts on the larger ISR either way"
)
_MARK: Final = "the mark tells of a loss that has happened, and was outside of the guarantee"
_HEARD: Final = "at its protocol version no leader writes an ISR itself, so that there is nothing to hear"

ZOOKEEPER_MUTANTS: Final[Mapping[Mutant, Row]] = MappingProxyType(
    {
        ("alter_isr_checks", "none"): Harmless(
            scenario="-", era=RELEASE, why="no ISR changes but by elections, so that more members are waited for"
        ),
        ("alter_isr_checks", "2.7"): Harmless(scenario="Z04", era=RELEASE, why=_COMPARED),
        ("alter_isr_checks", "3.2"): Harmless(scenario="Z04", era=RELEASE, why=_COMPARED),
        ("alter_isr_checks", "kip"): Harmless(scenario="-", era=RELEASE, why="it refuses what no leader asks for"),
        ("alter_isr_checks", "3.3"): Harmless(scenario="-", era=LETTER, why="it refuses less of what no leader asks"),
        ("isr_settled_by", "leader_and_isr"): Harmless(scenario="-", era=RELEASE, why=_NEVER_TOLD),
        ("isr_settled_by", "answer"): Harmless(scenario="-", era=LETTER, why=_ANSWERED_LATE),
        ("isr_write_unknown", "keep"): Lethal(
            scenario="Z05", era=RELEASE, beside=((PROPERTY, "2.6"),), profiles=("zk-isr",)
        ),
        ("equal_epoch_leader_and_isr", "newer_partition_epoch"): Harmless(
            scenario="-", era=RELEASE, why="its controller says nothing new in a leader epoch that was told before"
        ),
        ("equal_epoch_leader_and_isr", "ignored"): Harmless(scenario="-", era=LETTER, why=_TOLD_OR_ANSWERED),
        ("leader_and_isr_partition_epoch_check", "off"): Harmless(
            scenario="-",
            era=RELEASE,
            why="each write raises the version, and each decision the leader epoch: older by one is older by the other",
        ),
        ("leader_recovery_state", "none"): Harmless(scenario="Z19", era=RELEASE, why=_MARK),
        ("leader_recovery_state", "gate"): Harmless(scenario="Z20", era=RELEASE, why=_MARK),
        ("leader_recovery_state", "stored"): Harmless(scenario="Z20", era=LETTER, why=_MARK),
        ("stop_replica_epoch", "off"): Lethal(scenario="Z11", era=RELEASE, profiles=("zk-races",)),
        ("stop_replica_epoch", "greater"): Harmless(
            scenario="Z14", era=RELEASE, why="a replica that is not stopped keeps a log that nobody reads"
        ),
        ("isr_eligibility_check", "off"): Harmless(
            scenario="Z04", era=RELEASE, why="the high watermark waits for a member that is dead"
        ),
        # Without ids nothing tells the records of a topic from those of the next one of its name.
        ("topic_ids", "off"): Lethal(scenario="Z13", era=RELEASE, profiles=("zk-strays",), verdict=Verdict.UNKNOWN),
        ("contains_all_replicas", "on"): Harmless(
            scenario="Z12", era=RELEASE, why="the list is true for the life and the term that it is made for"
        ),
        ("contains_all_replicas", "off"): Harmless(
            scenario="Z12", era=LETTER, why="where topics have ids, a stray is read by nobody; it only takes room"
        ),
        ("control_broker_epoch_check", "off"): Lethal(scenario="Z15", era=LETTER, profiles=("zk-races",)),
        ("controller_epoch_fence", "off"): Lethal(scenario="Z08", era=RELEASE, profiles=("zk-races",)),
        ("watch_notifications", "below_alter_isr"): Harmless(scenario="-", era=RELEASE, why=_HEARD),
        ("watch_notifications", "always"): Harmless(scenario="-", era=LETTER, why=_HEARD),
    }
)
"""By mutant."""


ROWS: Final[Mapping[Mutant, Row]] = MappingProxyType({**MUTANTS, **ZOOKEEPER_MUTANTS})
"""Of clusters of either kind."""


def zookeeper_mutants() -> tuple[Mutant, ...]:
    """Returns every value that a rule of ZooKeeper clusters does not have both in the release and in the KIPs."""
    release, letter = (rule_texts(era_rules(era)) for era in (RELEASE, LETTER))
    return tuple(
        (name, value)
        for name in ZOOKEEPER_RULES
        for value in rule_choices(name)
        if not value == release[name] == letter[name]
    )
