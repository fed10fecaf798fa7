"""C4: records missed by consumers that resume at their old offset in a recreated topic of the same name.

A consumer keeps its position when the topic's id changes, and no broker informs it that the records below belong to
another topic. If it seeks before it receives anything of the new topic, the start offset is its own choice.
"""

from typing import NamedTuple

from laststand.emulator.core.broker.zookeeper.metadata_cache import real_topic_id
from laststand.emulator.core.client.steps import PollRecorded
from laststand.emulator.core.promises import PROMISES, Exemption
from laststand.emulator.core.types import Offset, TopicId, TopicPartition
from laststand.emulator.simulator.oracle.alarm_log import AlarmLog
from laststand.emulator.simulator.oracle.finding import Guarantee
from laststand.emulator.simulator.oracle.truth import PartitionTruth


class _Reader(NamedTuple):
    client: str
    name: TopicPartition


class _Stay:
    """A consumer's time in one topic: whether it received anything, and the offset from the former topic, if any."""

    def __init__(self, topic_id: TopicId, brought: Offset | None) -> None:
        self.topic_id = topic_id
        self.brought = brought
        self.has_received = False


class ResumedReaders:
    """Finds consumers of one run that began in a topic with their offset from the former topic."""

    def __init__(self, alarm_log: AlarmLog) -> None:
        self._alarm_log = alarm_log
        self._stays: dict[_Reader, _Stay] = {}
        self._observed: dict[_Reader, set[tuple[Offset, int]]] = {}

    def polled(self, client: str, record: PollRecorded) -> None:
        """A consumer's fetch succeeded, from the former or the present topic of that name."""
        topic_id = record.topic_id
        if topic_id is None or real_topic_id(topic_id) is None:
            return
        reader = _Reader(client, record.partition)
        stay = self._stays.get(reader)
        if stay is None or stay.topic_id != topic_id:
            is_resumed = stay is not None and not record.seek
            stay = self._stays[reader] = _Stay(topic_id, record.position if is_resumed else None)
        elif record.seek and not stay.has_received:
            stay.brought = None
        stay.has_received |= bool(record.batches)
        self._observed.setdefault(reader, set()).update((batch.base_offset, batch.crc) for batch in record.batches)

    def check(self, name: TopicPartition, topic_id: TopicId, truth: PartitionTruth) -> None:
        """C4 on the topic that has this name at the end of a run."""
        exempts = PROMISES["C4"].leaves_out(Exemption.DELETED_RECORDS)
        for reader, stay in self._stays.items():
            if reader.name != name or stay.topic_id != topic_id or stay.brought is None:
                continue
            for promise in truth.ever_acked.values():
                is_given = (promise.base_offset, promise.crc) in self._observed[reader]
                is_passed = promise.base_offset < stay.brought
                is_exempt = exempts and truth.is_deleted(promise, promise.last_offset)
                if is_passed and not is_given and not is_exempt:
                    last_offset = min(promise.last_offset, stay.brought - 1)
                    missed = f"{name} {promise.base_offset}..{last_offset} (batch {promise.crc}) never reached"
                    went_on = f"{reader.client}, which went on at {stay.brought} when the topic was created again"
                    # No response shows this to a consumer: an administrator who recreates a topic accepts it.
                    self._alarm_log.report("C4", name, f"{missed} {went_on}", guarantee=Guarantee.EXCEEDED)
