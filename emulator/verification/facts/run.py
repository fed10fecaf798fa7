"""All facts of one run: those of the cluster, and those of each partition."""

from typing import Final

import msgspec

from laststand.emulator.core import events
from laststand.emulator.verification.facts.cluster import ClusterFacts
from laststand.emulator.verification.facts.coordinators import add_markers
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.facts.transactions import stored_batches
from laststand.emulator.verification.tables.events import place_of
from laststand.emulator.verification.tables.final_logs import ReadLog
from laststand.emulator.verification.tables.late_topic_ids import with_known_id
from laststand.emulator.verification.tables.rows import RowTables
from laststand.emulator.verification.tables.timeline import COLLECTED, CollectedEvent, Timeline

_COLLECTED: Final = frozenset(COLLECTED)


class RunFacts:
    """The facts of one run, filled line by line."""

    def __init__(self) -> None:
        self.cluster = ClusterFacts()
        self.rows = RowTables()
        self._partitions: dict[tuple[str, int], PartitionFacts] = {}
        self._collected: list[CollectedEvent[events.Event]] = []

    def partition(self, topic: str, partition: int) -> PartitionFacts:
        """Returns the facts of a partition, new ones for a partition that was not named before."""
        facts = self._partitions.get((topic, partition))
        if facts is None:
            facts = self._partitions[topic, partition] = PartitionFacts(self.cluster, topic, partition)
        return facts

    def apart(self, topic: str, partition: int) -> PartitionFacts:
        """Returns separate facts of a partition with a copy of its events so far; rows added to them stay separate."""
        facts = PartitionFacts(self.cluster, topic, partition)
        known = self._partitions.get((topic, partition))
        if known is not None:
            facts.events.add_all(known.events)
        return facts

    def partitions(self) -> tuple[PartitionFacts, ...]:
        """The facts of all partitions, by name."""
        return tuple(self._partitions[key] for key in sorted(self._partitions))

    def add_event(self, collected: CollectedEvent[events.Event]) -> None:
        """Takes an event; ``order_events`` is called after the last one."""
        event = collected.event
        kind = type(event)
        if isinstance(event, events.PartitionEvent):
            self.partition(event.topic, event.partition).events.add(collected)
        if kind is events.PartitionChanged or not isinstance(event, events.PartitionEvent):
            self.cluster.events.add(collected)
        if kind in _COLLECTED:
            self._collected.append(collected)

    def order_events(self) -> Timeline:
        """Puts all events into their nodes' order, and returns those that are the run's timeline."""
        self.cluster.events.sort()
        ids = self.cluster.late_topic_ids
        for name, rows in self.rows.parts().items():
            self.partition(*name).add_rows(rows)
        for facts in self._partitions.values():
            facts.replace_late_ids()
            facts.events.sort()
        return Timeline(events=tuple(with_known_id(each, ids) for each in sorted(self._collected, key=place_of)))

    def complete_transactions(self) -> None:
        """Adds the batches of transactions, as sent and as stored in settled logs, once all final logs are read."""
        facts = self.cluster.transactions
        if any(each.events.of(events.TransitionBegun) for each in self.partitions()):
            for each in self.partitions():
                add_markers(facts.markers, each)
        if facts.is_empty:
            return
        for each in self.partitions():
            facts.add_sends(each.sent)
            facts.deletions[each.topic, each.partition] = each.deleted_below
            if each.settled:
                facts.stored[each.topic, each.partition] = stored_batches(each.settled_batches)

    def add_final(self, found: ReadLog, to: PartitionFacts | None = None) -> None:
        """Adds a final log, once the facts of the cluster are complete.

        Args:
            found: the log.
            to: separate facts of its partition (``apart``); the run's own by default.
        """
        topic_id = found.log.topic_id
        known = self.cluster.late_topic_ids.get(topic_id or "", topic_id)
        found = found._replace(log=msgspec.structs.replace(found.log, topic_id=known))
        facts = self.partition(found.log.topic, found.log.partition) if to is None else to
        facts.final_logs.append(found.log)
        facts.final_batches = facts.final_batches.joined([found.batches()])
