"""Finds the rule that would let a replica lead, as a controller would if only this broker came back. Pure.

The rules are the core's (``controller.election``), applied to one broker at a time, in the state at the end of the
metadata log. A broker that restarts registers first: if eligible leader replicas are on, a broker that cannot prove a
clean shutdown then loses its places in ISR and ELR (KIP-966; ``shutdown_fallout``). So a rule may hold now and no
longer hold once the broker is back.
"""

from enum import Enum

import msgspec

from laststand.emulator.core import events
from laststand.emulator.core.controller.election import Candidates, elect_leader
from laststand.emulator.core.image import PartitionState
from laststand.emulator.core.switches import LastKnown
from laststand.emulator.core.types import BrokerId, ElectionType


class ElectionRule(Enum):
    """The first rule by which a replica could be elected."""

    ISR = "isr"
    """Cleanly: it is in sync."""

    ELR = "elr"
    """Cleanly: it is an eligible leader replica, and the ISR is empty."""

    LAST_KNOWN_LEADER = "last_known_leader"
    """Uncleanly, without being asked: it led last, and ISR and ELR are empty."""

    UNCLEAN = "unclean"
    """Uncleanly: by ``unclean.leader.election.enable``, or by an administrator."""

    NOT_ASSIGNED = "not_assigned"
    """Never: the partition is not assigned to it."""

    UNKNOWN = "unknown"
    """There is no metadata log to ask."""


class Eligibility(msgspec.Struct, frozen=True, kw_only=True):
    """The eligibility of a replica to lead.

    Attributes:
        rule: the first rule that lets the replica lead.
        survives_restart: whether the broker keeps its places in ISR and ELR when it registers again; ``None`` if that
            does not matter to the rule, or is not known.
        reason: both in words.
    """

    rule: ElectionRule
    survives_restart: bool | None
    reason: str


class BrokerEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """The evidence about a broker's last process.

    Attributes:
        registered_epoch: its broker epoch by the metadata log; ``None`` if it is not registered.
        clean_epoch: the broker epoch that its log directories were closed under; ``None`` if they were not closed in
            order, or under different ones.
        unseen_directories: ids of log directories that the broker registered with, and of which no copy was read.
    """

    registered_epoch: int | None
    clean_epoch: int | None
    unseen_directories: tuple[str, ...] = ()


UNKNOWN_ELIGIBILITY = Eligibility(
    rule=ElectionRule.UNKNOWN, survives_restart=None, reason="there is no metadata log to ask"
)

_RULES = {
    events.Election.ISR: ElectionRule.ISR,
    events.Election.ELR: ElectionRule.ELR,
    events.Election.LAST_KNOWN_LEADER: ElectionRule.LAST_KNOWN_LEADER,
    events.Election.UNCLEAN: ElectionRule.UNCLEAN,
}
_REASONS = {
    ElectionRule.ISR: "in the ISR",
    ElectionRule.ELR: "in the ELR, and the ISR is empty",
    ElectionRule.LAST_KNOWN_LEADER: "the last known leader, and ISR and ELR are empty: an unclean election",
    ElectionRule.UNCLEAN: "in neither ISR nor ELR: only an unclean election",
}


def judge_eligibility(
    state: PartitionState, broker_id: BrokerId, evidence: BrokerEvidence, *, elr_level: int
) -> Eligibility:
    """Returns whether a replica may lead a partition that has no leader.

    Args:
        state: of the partition.
        broker_id: of the replica.
        evidence: about its broker.
        elr_level: of the feature ``eligible.leader.replicas.version``.
    """
    if broker_id not in state.replicas:
        reason = f"the partition is assigned to {_listed(state.replicas)}"
        return Eligibility(rule=ElectionRule.NOT_ASSIGNED, survives_restart=None, reason=reason)
    rule = _rule(state, broker_id, is_elr_on=elr_level > 0)
    reason = _REASONS[rule]
    if rule is ElectionRule.UNCLEAN and broker_id in state.elr:
        reason = f"in the ELR, but the ISR has {_listed(state.isr)}: only an unclean election"
    is_at_risk = elr_level > 0 and rule in (ElectionRule.ISR, ElectionRule.ELR)
    if not is_at_risk:
        return Eligibility(rule=rule, survives_restart=None, reason=reason)
    survives = evidence.clean_epoch is not None and evidence.clean_epoch == evidence.registered_epoch
    if survives and evidence.unseen_directories:
        reason += f"; whether it stopped in order is not known: directory {evidence.unseen_directories[0]} is not here"
        return Eligibility(rule=rule, survives_restart=None, reason=reason)
    if not survives:
        reason += "; but it did not stop in order, and loses that place when it registers"
    return Eligibility(rule=rule, survives_restart=survives, reason=reason)


def _rule(state: PartitionState, broker_id: BrokerId, *, is_elr_on: bool) -> ElectionRule:
    candidates = Candidates(
        replicas=state.replicas,
        isr=state.isr,
        elr=state.elr,
        leader=None,
        acceptable=frozenset({broker_id}),
        last_known_leader=state.last_known_leader if is_elr_on else None,
    )
    result = elect_leader(candidates, mode=ElectionType.UNCLEAN, last_known=LastKnown.LEADER)
    return _RULES[result.election]


def _listed(brokers: tuple[BrokerId, ...]) -> str:
    return ", ".join(map(str, brokers)) or "nobody"
