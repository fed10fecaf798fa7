"""The guarantee, kept up to date while the run goes on.

It holds for a record if from its acknowledgement up to the election of the first leader that lacks it at most
min(min ISR, replication factor) - 1 replicas of the partition were *outstanding*, and no election was unclean. A
replica is outstanding from the end of an incarnation without clean shutdown until a committed ISR contains it after its
new registration. Moments are numbers of events.
"""

from typing import Final

from emulator.core.events import BrokerRegistered, Election, IncarnationEnd, IncarnationEnded, PartitionChanged
from emulator.core.types import BrokerId, IncarnationId, LeaderEpoch, NodeId
from emulator.simulator.nodes import incarnation_name

_NEVER: Final = 1 << 62
_UNCLEAN = (Election.UNCLEAN, Election.LAST_KNOWN_LEADER)


class GuaranteeLedger:
    """One partition's replicas that are outstanding, and when there were too many of them.

    Attributes:
        allowed: how many may be outstanding.
        elected_at: moment of each leader epoch's election.
    """

    def __init__(self) -> None:
        self.allowed = 0
        self.elected_at: dict[LeaderEpoch, int] = {}
        self._replicas: tuple[BrokerId, ...] = ()
        self._ended: dict[NodeId, int] = {}
        self._registered: set[NodeId] = set()
        self._exceeded: list[list[int | None]] = []

    def successor(self) -> "GuaranteeLedger":
        """Returns the ledger of a partition that begins now: who is outstanding is so for it, too."""
        ledger = GuaranteeLedger()
        ledger._ended = dict(self._ended)
        ledger._registered = set(self._registered)
        return ledger

    def ended(self, event: IncarnationEnded, *, moment: int) -> None:
        """A process ended."""
        if event.end is IncarnationEnd.STOPPED or event.ended_node >= 100:
            return
        self._ended[event.ended_node] = event.ended_incarnation
        self._registered.discard(event.ended_node)
        self._review(moment)

    def registered(self, event: BrokerRegistered) -> None:
        """A broker registered; it counts if it is a later process than the one that ended."""
        ended = self._ended.get(event.broker_id)
        if ended is not None and event.incarnation_id not in _up_to(event.broker_id, ended):
            self._registered.add(event.broker_id)

    def changed(self, event: PartitionChanged, *, moment: int) -> None:
        """The partition's state was committed."""
        self._replicas = event.replicas
        self.allowed = min(event.effective_min_isr, len(event.replicas)) - 1
        self.elected_at.setdefault(event.leader_epoch, moment)
        for member in event.isr:
            if member in self._registered:
                self._registered.discard(member)
                del self._ended[member]
        if event.election in _UNCLEAN:
            # In front of an interval that is open, which is the last one.
            self._exceeded.insert(0, [moment, moment])
        self._review(moment)

    def outstanding(self) -> tuple[NodeId, ...]:
        """Returns the replicas that are outstanding now."""
        return tuple(sorted(node for node in self._ended if node in self._replicas))

    def _review(self, moment: int) -> None:
        is_open = bool(self._exceeded) and self._exceeded[-1][1] is None
        if (len(self.outstanding()) > self.allowed) != is_open:
            if is_open:
                self._exceeded[-1][1] = moment
            else:
                self._exceeded.append([moment, None])

    def deposed_at(self, leader_epoch: LeaderEpoch) -> int:
        """Returns when the leader of an epoch was deposed; later than everything, if it was not.

        Until it hears of that it may commit and acknowledge, and its successor, who lacks that, is elected already.
        """
        return min((moment for epoch, moment in self.elected_at.items() if epoch > leader_epoch), default=_NEVER)

    def held(self, since: int, until: int) -> bool:
        """Whether the guarantee held from one moment to another, both included."""
        return not any(
            begin is not None and begin <= until and (end is None or end >= since) for begin, end in self._exceeded
        )


def _up_to(broker_id: BrokerId, incarnation: int) -> frozenset[IncarnationId]:
    return frozenset(incarnation_name(broker_id, number) for number in range(incarnation + 1))
