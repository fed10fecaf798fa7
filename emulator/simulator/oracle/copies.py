"""Records which nodes ever had a batch, and which lost it with their page cache: D4 depends on these losses."""

from collections import defaultdict

import msgspec

from laststand.emulator.core import events
from laststand.emulator.core.promises import PROMISES, Exemption
from laststand.emulator.core.types import NodeId, Offset, TopicPartition
from laststand.emulator.simulator.oracle.truth import PromisedBatch

_BatchKey = tuple[Offset, int]
"""Last offset and CRC."""


class _Holders(msgspec.Struct):
    """The nodes that ever had a batch, those in whose log it is, and those that lost it with their page cache."""

    ever: set[NodeId] = msgspec.field(default_factory=set)
    now: set[NodeId] = msgspec.field(default_factory=set)
    without_it: set[NodeId] = msgspec.field(default_factory=set)


class Copies:
    """Copies of all batches of one run."""

    def __init__(self) -> None:
        self._holders: defaultdict[TopicPartition, dict[_BatchKey, _Holders]] = defaultdict(dict)

    def appended(self, node_id: NodeId, name: TopicPartition, event: events.BatchAppended) -> None:
        """Notes that a node has a batch in its log; an earlier loss of this batch by the same node no longer counts."""
        holders = self._holders[name].setdefault((event.last_offset, event.crc), _Holders())
        holders.ever.add(node_id)
        holders.now.add(node_id)
        holders.without_it.discard(node_id)

    def cut(self, node_id: NodeId, name: TopicPartition, *, from_offset: Offset) -> None:
        """A node truncated or deleted its log: a later power loss does not count as the loss of these batches."""
        for (last_offset, _), holders in self._holders[name].items():
            if last_offset >= from_offset:
                holders.now.discard(node_id)

    def deleted(self, node_id: NodeId, name: TopicPartition, *, below: Offset) -> None:
        """A node deleted its log below an offset."""
        for (last_offset, _), holders in self._holders[name].items():
            if last_offset < below:
                holders.now.discard(node_id)

    def power_lost(self, name: TopicPartition, event: events.PowerLost) -> None:
        """A node lost the end of its log."""
        for (last_offset, _), holders in self._holders[name].items():
            if event.lost_node in holders.now and last_offset >= event.new_end_offset:
                holders.now.discard(event.lost_node)
                holders.without_it.add(event.lost_node)

    def forget(self, name: TopicPartition) -> None:
        """Notes that a partition was deleted; a later one of the same name starts without records."""
        self._holders.pop(name, None)

    def outlived_power_losses(self, name: TopicPartition, promise: PromisedBatch) -> bool:
        """Returns whether more nodes had a batch than lost it with their page cache."""
        holders = self._holders[name].get((promise.last_offset, promise.crc), _Holders())
        lost = holders.without_it if PROMISES["D4"].leaves_out(Exemption.LOST_DISKS) else ()
        return len(holders.ever) > len(lost)
