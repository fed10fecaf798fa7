"""The oracle's own fold of the metadata log: every state that a partition or a broker ever had.

A second implementation of the fold, on purpose: the oracle judges the core's own fold. States are kept with the offset
after the record that made them, so that a broker's image can be compared with the state at the offset that it reached,
however many records the broker applied at once.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Generic, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET

from laststand.emulator.core import records
from laststand.emulator.core.image import BrokerRegistration, PartitionState
from laststand.emulator.core.types import BrokerId, LeaderEpoch, MetadataOffset, PartitionEpoch, TopicId, TopicPartition

Transition: TypeAlias = Callable[[TopicPartition, PartitionState, PartitionState], None]
"""Called with a partition before and after a record."""

_Value = TypeVar("_Value", bound=msgspec.Struct)


class _History(Generic[_Value]):
    """The values of one partition or broker, each with the first metadata offset at which it holds."""

    __slots__ = ("_since", "_values")

    def __init__(self) -> None:
        self._since: list[MetadataOffset] = []
        self._values: list[_Value | None] = []

    def set(self, value: _Value | None, *, since: MetadataOffset) -> None:
        self._since.append(since)
        self._values.append(value)

    def at(self, end_offset: MetadataOffset) -> _Value | None:
        index = bisect_right(self._since, end_offset)
        return self._values[index - 1] if index else None

    @property
    def last(self) -> _Value | None:
        return self._values[-1] if self._values else None


class MetadataReference:
    """The fold of one controller's log.

    Args:
        on_transition: is called with every change of a partition, in order.

    Attributes:
        end_offset: end of the folded records.
    """

    def __init__(self, on_transition: Transition) -> None:
        self._on_transition = on_transition
        self.reset()

    def reset(self) -> None:
        """Forgets all states, because the log may have lost its end."""
        self.end_offset = MetadataOffset(0)
        self._isrs: dict[tuple[TopicPartition, LeaderEpoch], set[frozenset[BrokerId]]] = {}
        self._batches = 0
        self._topics: dict[TopicId, str] = {}
        self._partitions: dict[TopicPartition, _History[PartitionState]] = {}
        self._brokers: dict[BrokerId, _History[BrokerRegistration]] = {}

    def follow(self, log: Sequence[records.MetadataBatch]) -> bool:
        """Folds the new batches of a log; returns false if their offsets are not consecutive."""
        while self._batches < len(log):
            batch = log[self._batches]
            self._batches += 1
            if batch.base_offset != self.end_offset:
                return False
            for record in batch.records:
                self.end_offset = MetadataOffset(self.end_offset + 1)
                self._fold(record)
        return True

    def partition_at(self, name: TopicPartition, end_offset: MetadataOffset) -> PartitionState | None:
        """Returns a partition's state by the records below an offset; ``None`` if there is no such partition."""
        history = self._partitions.get(name)
        return None if history is None else history.at(end_offset)

    def partitions_at(self, end_offset: MetadataOffset) -> dict[TopicPartition, PartitionState]:
        """Returns all partitions by the records below an offset."""
        states = ((name, history.at(end_offset)) for name, history in self._partitions.items())
        return {name: state for name, state in states if state is not None}

    def brokers_at(self, end_offset: MetadataOffset) -> dict[BrokerId, BrokerRegistration]:
        """Returns all registrations by the records below an offset."""
        brokers = ((broker_id, history.at(end_offset)) for broker_id, history in self._brokers.items())
        return {broker_id: broker for broker_id, broker in brokers if broker is not None}

    def has_committed(self, name: TopicPartition, leader_epoch: LeaderEpoch, isr: Sequence[BrokerId]) -> bool:
        """Returns whether an ISR was committed in a leader epoch, or in the next one at its leader's request."""
        members = frozenset(isr)
        return any(
            members in self._isrs.get((name, LeaderEpoch(epoch)), ()) for epoch in (leader_epoch, leader_epoch + 1)
        )

    # --- Records ----------------------------------------------------------------------------------------------------

    def _fold(self, record: records.Record) -> None:
        match record:
            case records.PartitionChangeRecord():
                self._change(record)
            case records.PartitionRecord():
                name = TopicPartition(self._topics[record.topic_id], record.partition)
                fields = {field: getattr(record, field) for field in record.__struct_fields__ if field != "partition"}
                self._set_partition(name, PartitionState(**fields))
            case records.ClearElrRecord(topic_id=topic_id):
                self._clear_elr(topic_id)
            case records.RegisterBrokerRecord():
                fields = {field: getattr(record, field) for field in record.__struct_fields__}
                offset = MetadataOffset(self.end_offset - 1)
                self._set_broker(record.broker_id, BrokerRegistration(**fields, registration_offset=offset))
            case records.BrokerRegistrationChangeRecord():
                registration = self._brokers[record.broker_id].last
                if registration is not None:
                    changed = _replaced(registration, record, besides=("broker_id", "broker_epoch"))
                    self._set_broker(record.broker_id, changed)
            case records.UnregisterBrokerRecord(broker_id=broker_id):
                self._set_broker(broker_id, None)
            case records.TopicRecord(name=topic, topic_id=topic_id):
                self._topics[topic_id] = topic
            case records.RemoveTopicRecord(topic_id=topic_id):
                topic = self._topics.pop(topic_id)
                for name, history in self._partitions.items():
                    if name.topic == topic and history.last is not None:
                        history.set(None, since=self.end_offset)
            case _:
                pass  # configuration, features and producer ids are no state of a partition or a broker

    def _change(self, record: records.PartitionChangeRecord) -> None:
        name = TopicPartition(self._topics[record.topic_id], record.partition)
        before = self._partitions[name].last
        if before is None:
            return
        after = msgspec.structs.replace(
            _replaced(before, record, besides=("topic_id", "partition")),
            leader_epoch=LeaderEpoch(before.leader_epoch + (record.leader is not UNSET)),
            partition_epoch=PartitionEpoch(before.partition_epoch + 1),
        )
        self._set_partition(name, after)
        self._on_transition(name, before, after)

    def _clear_elr(self, topic_id: TopicId | None) -> None:
        for name, history in self._partitions.items():
            before = history.last
            if before is None or (topic_id is not None and before.topic_id != topic_id):
                continue
            if before.elr or before.last_known_elr or before.last_known_leader is not None:
                epoch = PartitionEpoch(before.partition_epoch + 1)
                after = msgspec.structs.replace(
                    before, elr=(), last_known_elr=(), last_known_leader=None, partition_epoch=epoch
                )
                history.set(after, since=self.end_offset)
                self._on_transition(name, before, after)

    def _set_partition(self, name: TopicPartition, state: PartitionState) -> None:
        self._partitions.setdefault(name, _History()).set(state, since=self.end_offset)
        self._isrs.setdefault((name, state.leader_epoch), set()).add(frozenset(state.isr))

    def _set_broker(self, broker_id: BrokerId, registration: BrokerRegistration | None) -> None:
        self._brokers.setdefault(broker_id, _History()).set(registration, since=self.end_offset)


def _replaced(
    value: _Value,
    record: records.PartitionChangeRecord | records.BrokerRegistrationChangeRecord,
    *,
    besides: tuple[str, ...],
) -> _Value:
    """Returns a value with the fields that a change record names."""
    names = (name for name in record.__struct_fields__ if name not in besides)
    return msgspec.structs.replace(
        value, **{name: field for name in names if (field := getattr(record, name)) is not UNSET}
    )
