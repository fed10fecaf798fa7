"""Records which nodes ever held a batch, and which lost it with their page cache: D4 promises what outlives that."""

from collections import defaultdict

from laststand.emulator.core import events
from laststand.emulator.core.promises import PROMISES, Exemption
from laststand.emulator.core.types import NodeId, Offset, TopicPartition
from laststand.emulator.simulator.oracle.truth import PromisedBatch

_BatchKey = tuple[Offset, int]
"""Last offset and CRC."""


class Copies:
    """Copies of all batches of one run."""

    def __init__(self) -> None:
        self._held: defaultdict[TopicPartition, dict[_BatchKey, set[NodeId]]] = defaultdict(dict)
        self._lost: defaultdict[TopicPartition, dict[_BatchKey, set[NodeId]]] = defaultdict(dict)

    def appended(self, node_id: NodeId, name: TopicPartition, event: events.BatchAppended) -> None:
        """A node has a batch in its log."""
        self._held[name].setdefault((event.last_offset, event.crc), set()).add(node_id)

    def power_lost(self, name: TopicPartition, event: events.PowerLost) -> None:
        """A node lost the end of its log."""
        for key, nodes in self._held[name].items():
            if event.lost_node in nodes and key[0] >= event.new_end_offset:
                self._lost[name].setdefault(key, set()).add(event.lost_node)

    def forget(self, name: TopicPartition) -> None:
        """A partition is gone; one of the same name starts from nothing."""
        self._held.pop(name, None)
        self._lost.pop(name, None)

    def outlived_power_losses(self, name: TopicPartition, promise: PromisedBatch) -> bool:
        """Returns whether more nodes held a batch than lost it with their page cache."""
        key = (promise.last_offset, promise.crc)
        lost = self._lost[name].get(key, ()) if PROMISES["D4"].leaves_out(Exemption.LOST_DISKS) else ()
        return len(self._held[name].get(key, ())) > len(lost)
