"""Choosing a leader: a pure function over the replica sets as they will be after the change.

A candidate is *valid* if it may lead and is in the ISR, or in the ELR while the ISR is empty: an ELR member never leads
while the ISR has members, not even when none of them may lead. In the order of Kafka's ``PartitionChangeBuilder``::

    CLEAN       current leader if valid, first valid in assignment order
    PREFERRED   first replica of the assignment if valid, then as ONLINE
    ONLINE      as CLEAN, then the last known leader
    UNCLEAN     as ONLINE, then a replica that may lead at all: the first of the assignment, or one that was drawn

The last known leader is an unclean choice. Kafka 4.2 takes it in every mode and before ordinary unclean candidates
(``LastKnown.LEADER``); KIP-966's delivery plan takes it only where unclean election is disabled (``LastKnown.KIP``).
"""

import msgspec

from laststand.emulator.core import events
from laststand.emulator.core.switches import LastKnown
from laststand.emulator.core.types import BrokerId, ElectionType


class Candidates(msgspec.Struct, frozen=True, kw_only=True):
    """The input of an election.

    Attributes:
        replicas: the assignment, preferred replica first.
        isr: in-sync replicas after the change.
        elr: eligible leader replicas after the change.
        leader: the current leader.
        acceptable: brokers that may lead: active ones, less the one that the change is about to exclude.
        last_known_leader: ``None`` also where eligible leader replicas are off, the unclean recovery manager is on,
            which takes the choice away, or the topic's strategy is None.
        draw: picks among the candidates of an unclean election; 0 is the first of the assignment.
    """

    replicas: tuple[BrokerId, ...]
    isr: tuple[BrokerId, ...]
    elr: tuple[BrokerId, ...]
    leader: BrokerId | None
    acceptable: frozenset[BrokerId]
    last_known_leader: BrokerId | None
    draw: int = 0

    @property
    def unclean(self) -> tuple[BrokerId, ...]:
        """Brokers that could win an unclean election, in assignment order."""
        return tuple(broker_id for broker_id in self.replicas if broker_id in self.acceptable)

    def is_valid(self, broker_id: BrokerId) -> bool:
        """Returns whether electing this replica would be clean."""
        is_member = broker_id in self.isr or (not self.isr and broker_id in self.elr)
        return is_member and broker_id in self.acceptable


class ElectionResult(msgspec.Struct, frozen=True, kw_only=True):
    """The winner, ``None`` if there is none, and by which rule."""

    leader: BrokerId | None
    election: events.Election

    @property
    def is_unclean(self) -> bool:
        """The winner may lack committed records."""
        return self.election in (events.Election.UNCLEAN, events.Election.LAST_KNOWN_LEADER)


def elect_leader(candidates: Candidates, *, mode: ElectionType, last_known: LastKnown) -> ElectionResult:
    """Returns the replica that should lead; the current leader stays if the mode allows it."""
    for broker_id in _clean_order(candidates, mode):
        if candidates.is_valid(broker_id):
            election = events.Election.ISR if broker_id in candidates.isr else events.Election.ELR
            return ElectionResult(leader=broker_id, election=election)
    if mode is ElectionType.CLEAN:
        return ElectionResult(leader=None, election=events.Election.NO_CANDIDATE)
    last_known_leader = _electable_last_known_leader(candidates)
    if last_known_leader is not None and (last_known is LastKnown.LEADER or mode is not ElectionType.UNCLEAN):
        return ElectionResult(leader=last_known_leader, election=events.Election.LAST_KNOWN_LEADER)
    if mode is ElectionType.UNCLEAN and candidates.unclean:
        drawn = candidates.unclean[candidates.draw % len(candidates.unclean)]
        return ElectionResult(leader=drawn, election=events.Election.UNCLEAN)
    return ElectionResult(leader=None, election=events.Election.NO_CANDIDATE)


def _clean_order(candidates: Candidates, mode: ElectionType) -> tuple[BrokerId, ...]:
    preferred = candidates.replicas[:1] if mode is ElectionType.PREFERRED else ()
    current = () if candidates.leader is None else (candidates.leader,)
    return preferred + current + candidates.replicas


def _electable_last_known_leader(candidates: Candidates) -> BrokerId | None:
    # An ELR member blocks this path even while it is fenced: it holds everything committed, so waiting is right.
    if candidates.isr or candidates.elr or candidates.last_known_leader not in candidates.acceptable:
        return None
    return candidates.last_known_leader
