"""The guarantee, updated while the run is played.

It covers a record if at every moment from its commit up to the election of the first leader that lacks it no more
replicas of the partition were *outstanding* than min(min ISR, replication factor) - 1 allows: the least min ISR that
was configured since the commit, and the replication factor at the commit or at that moment, whichever is less; and if
no unclean election was *accepted* meanwhile. A replica is outstanding from the end of an incarnation without clean
shutdown until a committed ISR contains it after its new registration. An incarnation that was registered and stopped
before it heard of that leaves no proof of a clean shutdown either (KIP-966: the previous broker epoch is the proof;
S44), nor can one that an administrator has unregistered. A replica that was assigned again has nothing of what others
hold: until a committed ISR contains it, it counts neither as outstanding nor towards the replication factor. An unclean
election, that of a last known leader included, is accepted where the configuration prefers it to waiting, or where an
administrator has asked for one.

Only configuration, requests and faults can begin an excuse, except for S44. What the judged cluster reports of itself
(registrations, ISRs, that an election was unclean) can only end or deny an excuse. Moments are
numbers of events.
"""

from collections.abc import Set
from itertools import accumulate
from typing import Final, NamedTuple

from laststand.emulator.core import events
from laststand.emulator.core.types import BrokerId, IncarnationId, LeaderEpoch, MetadataOffset, NodeId
from laststand.emulator.simulator.nodes.nodes import incarnation_name

_NEVER: Final = 1 << 62
_NO_INCARNATION: Final = -1
_UNCLEAN = (events.Election.UNCLEAN, events.Election.LAST_KNOWN_LEADER)


class _Span(NamedTuple):
    """A span from ``since`` until the next one begins, with its outstanding replicas and the configuration."""

    since: int
    outstanding: int
    min_isr: int
    replication_factor: int


class ProvenShutdowns:
    """Processes that could leave proof when they were stopped: those that knew their registration."""

    def __init__(self) -> None:
        self._heard: set[tuple[NodeId, int]] = set()
        self._registered: set[IncarnationId] = set()
        self._stopped: dict[IncarnationId, events.IncarnationEnded] = {}

    def heard(self, node_id: NodeId, incarnation: int) -> None:
        """Notes that a process knows its broker epoch."""
        self._heard.add((node_id, incarnation))

    def registered(self, event: events.BrokerRegistered) -> events.IncarnationEnded | None:
        """A process is registered; returns its end if it stopped before it could learn of its registration."""
        self._registered.add(event.incarnation_id)
        return self._stopped.get(event.incarnation_id)

    def leaves_proof(self, event: events.IncarnationEnded) -> bool:
        """Returns whether a process ended in order and can prove it; one that was never registered needs no proof."""
        if event.end is not events.IncarnationEnd.STOPPED:
            return False
        if event.ended_node >= 100 or (event.ended_node, event.ended_incarnation) in self._heard:
            return True
        name = incarnation_name(BrokerId(event.ended_node), event.ended_incarnation)
        self._stopped[name] = event
        return name not in self._registered


class GuaranteeLedger:
    """A partition's outstanding replicas, and the number that the configuration allows.

    Attributes:
        allowed: number of replicas that may be outstanding.
        replicas: the assignment, replicas that are being added or removed included.
        elected_at: moment of each leader epoch's election.
    """

    def __init__(self) -> None:
        self.allowed = 0
        self._min_isr = 1
        self.elected_at: dict[LeaderEpoch, int] = {}
        self._unelected_at: dict[tuple[LeaderEpoch, int], int] = {}
        self.replicas: tuple[BrokerId, ...] = ()
        self._isr: tuple[BrokerId, ...] = ()
        self._added: set[BrokerId] = set()
        self._returned: set[NodeId] = set()
        self._ended: dict[NodeId, int] = {}
        self._registered: set[NodeId] = set()
        self._spans: list[_Span] = []
        self._limits: list[tuple[MetadataOffset, int]] = []
        self._is_asked = False
        self._enough_at: int | None = None
        self._accepted: list[int] = []
        self._unclean: list[int] = []

    def successor(self) -> "GuaranteeLedger":
        """Returns the ledger of a partition that is created now, with the brokers that are outstanding already."""
        ledger = GuaranteeLedger()
        ledger._ended = dict(self._ended)
        ledger._registered = set(self._registered)
        return ledger

    def ended(self, event: events.IncarnationEnded, *, moment: int) -> None:
        """Notes that a process ended without proof of a clean shutdown."""
        if event.ended_node >= 100:
            return
        self._ended[event.ended_node] = event.ended_incarnation
        self._registered.discard(event.ended_node)
        self._review(moment)

    def unregistered(self, broker_id: BrokerId, *, moment: int) -> None:
        """An administrator unregistered a broker: when it returns, it can no longer prove a clean shutdown."""
        self._ended.setdefault(broker_id, _NO_INCARNATION)
        self._registered.discard(broker_id)
        self._review(moment)

    def registered(self, event: events.BrokerRegistered) -> None:
        """Notes that a broker registered; it counts if it is a later process than the one that ended."""
        ended = self._ended.get(event.broker_id)
        if ended is not None and event.incarnation_id not in _up_to(event.broker_id, ended):
            self._registered.add(event.broker_id)

    def asked(self) -> None:
        """An administrator requests an unclean election: one later unclean election is accepted."""
        self._is_asked = True

    def changed(
        self, event: events.PartitionChanged, *, min_isr: int, accepts_unclean_leaders: bool, moment: int
    ) -> None:
        """The partition's state was committed.

        Args:
            event: the change.
            min_isr: the configured min ISR.
            accepts_unclean_leaders: whether the configuration prefers an unclean leader to none.
            moment: the present moment.
        """
        if self.replicas:
            self._added.update(set(event.replicas) - set(self.replicas))
        self._added &= set(event.replicas) - set(event.isr)
        self.replicas = event.replicas
        self.elected_at.setdefault(event.leader_epoch, moment)
        for member in event.isr:
            if member in self._registered:
                self._registered.discard(member)
                del self._ended[member]
                self._returned.add(member)
        self._returned -= {*event.isr}.difference(self._isr) | {event.leader}
        self._isr = event.isr
        if event.election in _UNCLEAN:
            self._unclean.append(moment)
        if event.election in _UNCLEAN and (accepts_unclean_leaders or self._is_asked):
            self._accepted.append(moment)
            self._is_asked = False
        self.configured(min_isr, offset=event.metadata_offset, moment=moment)
        if len(event.isr) > self.allowed:
            self._enough_at = moment

    def configured(self, min_isr: int, *, offset: MetadataOffset, moment: int) -> None:
        """Min ISR or the replicas may have changed, by the record at an offset."""
        if min_isr != self._min_isr:
            self.eligibility_ended()
        self._min_isr = min_isr
        allowed = min(min_isr, len(self.holders)) - 1
        if allowed != self.allowed:
            self.allowed = allowed
            self._limits.append((offset, moment))
        self._review(moment)

    def eligibility_ended(self) -> None:
        """The members of the ELR are no longer eligible, because min ISR or the ELR feature has changed."""
        self._enough_at = None

    def keeps_a_candidate(self, moment: int) -> bool:
        """Returns whether a replica that is not outstanding must be in ISR or ELR (KIP-966).

        It must be so from the moment when the ISR was large enough, for as long as the guarantee holds.
        """
        return self._enough_at is not None and self.held(self._enough_at, moment)

    @property
    def holders(self) -> tuple[BrokerId, ...]:
        """The replicas that count: all except those that were added and have not been in a committed ISR since."""
        return tuple(replica for replica in self.replicas if replica not in self._added)

    def outstanding(self) -> tuple[NodeId, ...]:
        """Returns the replicas that are outstanding now."""
        return tuple(sorted(node for node in self._ended if node in self.holders))

    def unproven(self) -> Set[NodeId]:
        """Returns the outstanding replicas, and those that returned without having left the ISR.

        In ZooKeeper clusters, an ISR that a leader proposed before such a replica ended may still be committed. A
        replica that joins the ISR has caught up; a replica that is elected leader may not have.
        """
        return self._ended.keys() | self._returned

    def _review(self, moment: int) -> None:
        span = _Span(
            since=moment,
            outstanding=len(self.outstanding()),
            min_isr=self._min_isr,
            replication_factor=len(self.holders),
        )
        if not self._spans or self._spans[-1][1:] != span[1:]:
            self._spans.append(span)

    def took_over(self, leader_epoch: LeaderEpoch, incarnation: int, *, registered_at: int | None, moment: int) -> None:
        """The leader of an epoch took over, perhaps with a process that was started after its election."""
        elected_at = self.elected_at.get(leader_epoch)
        if registered_at is None or (elected_at is not None and registered_at > elected_at):
            self._unelected_at.setdefault((leader_epoch, incarnation), moment)

    def took_over_at(self, leader_epoch: LeaderEpoch, incarnation: int) -> int | None:
        """Returns the moment up to which the guarantee must have held for records that a leader lacks: its election.

        For a process that was started after the election, it is the moment when this process took over.
        """
        return self._unelected_at.get((leader_epoch, incarnation), self.elected_at.get(leader_epoch))

    def deposed_at(self, leader_epoch: LeaderEpoch) -> int:
        """Returns when the leader of an epoch was deposed; a later time than all others, if it was not.

        Until it learns of its deposition it may commit and acknowledge records that its successor lacks.
        """
        return min((moment for epoch, moment in self.elected_at.items() if epoch > leader_epoch), default=_NEVER)

    def known_at(self, end_offset: MetadataOffset, moment: int) -> int:
        """Returns the moment from which a promise counts that a leader with metadata up to an offset makes now.

        It lies before the first change of min ISR or of the replication factor that the leader has not applied.
        """
        return min((since - 1 for offset, since in self._limits if offset >= end_offset), default=moment)

    def elected_uncleanly(self, since: int, until: int) -> bool:
        """Returns whether an election between two moments was unclean, accepted or not.

        A deposed leader's promises count from its deposition, which may be that same election.
        """
        return any(since <= moment <= until for moment in self._unclean)

    def held(self, since: int, until: int) -> bool:
        """Returns whether the guarantee held from one moment to another, both included."""
        if any(since <= moment <= until for moment in self._accepted):
            return False
        ends = [span.since for span in self._spans[1:]] + [_NEVER]
        within = [span for span, end in zip(self._spans, ends, strict=True) if span.since <= until and end >= since]
        if not within:
            return True
        factor = within[0].replication_factor
        least_min_isr = accumulate((span.min_isr for span in within), min)
        return all(
            span.outstanding < min(min_isr, factor, span.replication_factor)
            for span, min_isr in zip(within, least_min_isr, strict=True)
        )


def _up_to(broker_id: BrokerId, incarnation: int) -> frozenset[IncarnationId]:
    return frozenset(incarnation_name(broker_id, number) for number in range(incarnation + 1))
