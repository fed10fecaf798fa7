"""Writes a run directory of any size: three brokers, partitions that broker 0 leads, acks=all, nothing lost.

Seven events per batch: appended three times, answered once, the leader's high watermark and two followers'. Events and
history are written by the writers of nodes and clients; the final logs hold real batches, so that verification does all
of its work.
"""

import contextlib
import struct
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, TypedDict

from crc32c import crc32c

from laststand.emulator.client.history import HISTORY_FILE, rewrite_history
from laststand.emulator.cluster.layout import event_file_name
from laststand.emulator.core import events
from laststand.emulator.core.history import (
    Attempt,
    FinalReadOperation,
    Operation,
    OperationType,
    PolledBatch,
    PollOperation,
    SendOperation,
)
from laststand.emulator.core.switches import Switches, switch_texts
from laststand.emulator.core.types import (
    BrokerEpoch,
    BrokerId,
    CauseId,
    ChangeReason,
    IncarnationId,
    LeaderEpoch,
    LeaderRecoveryState,
    MetadataOffset,
    NodeId,
    NodeRole,
    Offset,
    PartitionEpoch,
    ProducerEpoch,
    ProducerId,
    TopicId,
)
from laststand.emulator.node.event_writer import EventWriter
from laststand.emulator.storage.evidence_files import vouchers

EVENTS_PER_BATCH: Final = 7
LEADER_EVENTS_PER_BATCH: Final = 3
PARTITIONS: Final = 12
_BROKERS: Final = tuple(BrokerId(NodeId(number)) for number in range(3))
_LEADER: Final = _BROKERS[0]
_CONTROLLER: Final = NodeId(100)
_HARNESS: Final = NodeId(2000)
_RECORDS: Final = 10
_MIN_ISR: Final = 1
"""Kafka's default, as nothing is configured."""
_PRODUCER: Final = ProducerId(7)
_EPOCH: Final = LeaderEpoch(0)
_POLLED_AT_ONCE: Final = 500
_FLUSHED_AT_ONCE: Final = 1000
_TOPIC: Final = "orders"
_TOPIC_ID: Final = TopicId("AAAAAAAAAAAAAAAAAAAAAA")
_CAUSE: Final = CauseId("g")


class _Batch(NamedTuple):
    number: int
    partition: int
    base_offset: Offset
    crc: int
    content: bytes

    @property
    def end(self) -> Offset:
        return Offset(self.base_offset + _RECORDS)


class _Partition(TypedDict):
    topic: str
    partition: int
    topic_id: TopicId


class _Size(NamedTuple):
    batches: int
    partitions: int


def generate_run(path: Path, *, events: int, partitions: int = PARTITIONS) -> None:
    """Writes a run with about ``events`` events (a few dozen at least) into ``path``, which must not exist.

    Args:
        path: the run directory.
        events: how many.
        partitions: of the one topic; batches go to them in turn.
    """
    (path / "events").mkdir(parents=True)
    (path / "cluster.yaml").write_text("era: kip-966\n")
    (path / "scenario.yaml").write_text("name: generated\n")
    size = _Size(max(events // EVENTS_PER_BATCH, partitions), partitions)
    with ProcessPoolExecutor() as pool:
        written = [pool.submit(_write_broker, path, node, size) for node in _BROKERS]
        written.append(pool.submit(_write_history, path, size))
        for each in written:
            each.result()
    _write_events(path, _CONTROLLER, _controller_events(partitions))
    _write_events(path, _HARNESS, _harness_events(path, 2 * len(_BROKERS) + partitions))


def leader_events(batches: int) -> Iterator[events.Event]:
    """Yields what a leader writes down of so many batches of one partition."""
    for batch in _batches(_Size(batches, 1)):
        yield from _of_leader(batch)


def _of_leader(batch: _Batch) -> Iterator[events.Event]:
    cause = CauseId(f"producer-0:{batch.number}")
    yield _appended(batch, cause, events.AppendRole.LEADER)
    yield _advanced(batch, cause)
    yield _answered(batch, cause)


def _write_broker(path: Path, node: BrokerId, size: _Size) -> None:
    data = path / "nodes" / str(node) / "data"
    data.mkdir(parents=True)
    (data / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":1}')
    with contextlib.ExitStack() as stack:
        logs = [stack.enter_context(_new_log(data / f"{_TOPIC}-{number}")) for number in range(size.partitions)]
        _write_events(path, node, _broker_events(node, size, logs))


def _write_history(path: Path, size: _Size) -> None:
    rewrite_history(path / HISTORY_FILE, _operations(size))


def _batches(size: _Size) -> Iterator[_Batch]:
    return (_batch(number, size.partitions) for number in range(size.batches))


def _batch(number: int, partitions: int) -> _Batch:
    turn, partition = divmod(number, partitions)
    base_offset = turn * _RECORDS
    body = struct.pack(">hiqqqhii", 0, _RECORDS - 1, 0, partition, _PRODUCER, 0, base_offset, _RECORDS)
    crc = crc32c(body)
    content = struct.pack(">qiibI", base_offset, len(body) + 9, 0, 2, crc) + body
    return _Batch(number, partition, Offset(base_offset), crc, content)


def _new_log(directory: Path) -> BinaryIO:
    directory.mkdir()
    (directory / "partition.metadata").write_text(f"version: 0\ntopic_id: {_TOPIC_ID}\n")
    return (directory / f"{0:020}.log").open("wb")


def _write_events(path: Path, node: NodeId, events: Iterator[events.Event]) -> None:
    name = event_file_name(node, 0)
    writer = EventWriter(str(path / "events" / name), run="generated", node_id=node, incarnation=0)
    for number, event in enumerate(events, 1):
        writer.add(event)
        if number % _FLUSHED_AT_ONCE == 0:
            writer.flush()
    writer.close()


def _started(node: int, role: NodeRole) -> events.NodeStarted:
    return events.NodeStarted(
        cause_id=_CAUSE,
        role=role,
        incarnation_id=IncarnationId(f"i{node}"),
        switches={} if role is NodeRole.HARNESS else switch_texts(Switches()),
        properties={},
        wall_time_ns=0,
        evidence_format=events.EVIDENCE_FORMAT if role is NodeRole.HARNESS else None,
    )


def _of(partition: int) -> _Partition:
    return {"topic": _TOPIC, "partition": partition, "topic_id": _TOPIC_ID}


def _broker_events(node: BrokerId, size: _Size, logs: list[BinaryIO]) -> Iterator[events.Event]:
    """Yields what a broker writes down, and fills its logs on the way."""
    yield _started(node, NodeRole.BROKER)
    for number in range(size.partitions):
        yield events.LogOpened(
            cause_id=_CAUSE,
            **_of(number),
            is_clean=True,
            log_start_offset=Offset(0),
            log_end_offset=Offset(0),
            high_watermark=Offset(0),
            recovery_point=Offset(0),
            epochs=(),
        )
    leads = node == _LEADER
    if leads:
        yield from _leadership(size.partitions)
    for batch in _batches(size):
        logs[batch.partition].write(batch.content)
        if leads:
            yield from _of_leader(batch)
        else:
            cause = CauseId(f"producer-0:{batch.number}")
            yield _appended(batch, cause, events.AppendRole.FOLLOWER)
            yield events.FollowerHighWatermarkUpdated(
                cause_id=cause,
                **_of(batch.partition),
                old=batch.base_offset,
                new=batch.end,
                log_end_offset=batch.end,
                leader_epoch=_EPOCH,
            )
    yield events.NodeStopped(cause_id=_CAUSE)


def _leadership(partitions: int) -> Iterator[events.Event]:
    end = MetadataOffset(2 * len(_BROKERS) + partitions)
    yield events.MetadataApplied(cause_id=_CAUSE, start_offset=MetadataOffset(0), end_offset=end)
    for number in range(partitions):
        yield events.BecameLeader(
            cause_id=_CAUSE,
            **_of(number),
            leader_epoch=_EPOCH,
            partition_epoch=PartitionEpoch(0),
            epoch_start_offset=Offset(0),
            high_watermark=Offset(0),
            isr=_BROKERS,
        )


def _appended(batch: _Batch, cause: CauseId, role: events.AppendRole) -> events.Event:
    return events.BatchAppended(
        cause_id=cause,
        **_of(batch.partition),
        role=role,
        base_offset=batch.base_offset,
        last_offset=Offset(batch.end - 1),
        leader_epoch=_EPOCH,
        current_leader_epoch=_EPOCH,
        crc=batch.crc,
        record_count=_RECORDS,
        producer_id=_PRODUCER,
        producer_epoch=ProducerEpoch(0),
        base_sequence=batch.base_offset,
    )


def _advanced(batch: _Batch, cause: CauseId) -> events.Event:
    return events.HighWatermarkAdvanced(
        cause_id=cause,
        **_of(batch.partition),
        old=batch.base_offset,
        new=batch.end,
        leader_epoch=_EPOCH,
        log_end_offset=batch.end,
        committed_isr=_BROKERS,
        maximal_isr=_BROKERS,
        joiners=(),
        effective_min_isr=_MIN_ISR,
        replicas=tuple([events.ReplicaProgress(broker, batch.end, _EPOCH) for broker in _BROKERS]),
    )


def _answered(batch: _Batch, cause: CauseId) -> events.Event:
    return events.ProduceAnswered(
        cause_id=cause,
        **_of(batch.partition),
        acks=-1,
        error="NONE",
        base_offset=batch.base_offset,
        record_count=_RECORDS,
        high_watermark=batch.end,
        committed_isr=_BROKERS,
        leader_epoch=_EPOCH,
    )


def _controller_events(partitions: int) -> Iterator[events.Event]:
    yield _started(_CONTROLLER, NodeRole.CONTROLLER)
    for broker in _BROKERS:
        yield events.BrokerRegistered(
            cause_id=_CAUSE,
            metadata_offset=MetadataOffset(broker),
            broker_id=broker,
            broker_epoch=BrokerEpoch(broker),
            incarnation_id=IncarnationId(f"i{broker}"),
            previous_broker_epoch=None,
            stored_broker_epoch=None,
            is_clean=True,
        )
    for broker in _BROKERS:
        offset = MetadataOffset(len(_BROKERS) + broker)
        yield events.BrokerUnfenced(
            cause_id=_CAUSE, metadata_offset=offset, broker_id=broker, broker_epoch=BrokerEpoch(broker)
        )
    for number in range(partitions):
        yield events.PartitionChanged(
            cause_id=_CAUSE,
            **_of(number),
            metadata_offset=MetadataOffset(2 * len(_BROKERS) + number),
            reason=ChangeReason.CREATED,
            election=events.Election.NONE,
            broker_id=None,
            effective_min_isr=_MIN_ISR,
            leader=_LEADER,
            leader_epoch=_EPOCH,
            partition_epoch=PartitionEpoch(0),
            replicas=_BROKERS,
            isr=_BROKERS,
            elr=(),
            last_known_elr=(),
            last_known_leader=None,
            leader_recovery_state=LeaderRecoveryState.RECOVERED,
        )
    yield events.NodeStopped(cause_id=_CAUSE)


def _harness_events(run: Path, metadata_end: int) -> Iterator[events.Event]:
    yield _started(_HARNESS, NodeRole.HARNESS)
    nodes = (*_BROKERS, _CONTROLLER)
    for node in nodes:
        name = event_file_name(node, 0)
        yield events.IncarnationStarted(cause_id=_CAUSE, started_node=node, started_incarnation=0, event_file=name)
    for node in nodes:
        yield events.IncarnationEnded(
            cause_id=_CAUSE,
            ended_node=node,
            ended_incarnation=0,
            end=events.IncarnationEnd.STOPPED,
            exit_code=0,
            metadata_offset=MetadataOffset(metadata_end),
        )
    yield from vouchers(run, but_for=run / "events" / event_file_name(_HARNESS, 0), cause_id=_CAUSE)
    yield events.RunEnded(cause_id=_CAUSE, problem=None)
    yield events.NodeStopped(cause_id=_CAUSE)


def _operations(size: _Size) -> Iterator[Operation]:
    for batch in _batches(size):
        yield _send(batch, OperationType.INVOKE, 2 * batch.number)
        yield _send(batch, OperationType.OK, 2 * batch.number + 1)
    index = 2 * size.batches
    for partition in range(size.partitions):
        numbers = range(partition, size.batches, size.partitions)
        for start in range(0, len(numbers), _POLLED_AT_ONCE):
            polled = [_batch(number, size.partitions) for number in numbers[start : start + _POLLED_AT_ONCE]]
            yield _poll(polled, index, end=Offset(len(numbers) * _RECORDS))
            index += 1
        yield FinalReadOperation(
            index=index,
            time_ns=index,
            type=OperationType.OK,
            process="final",
            operation_id=CauseId(f"final:{partition}:end"),
            **_of(partition),
            start_offset=Offset(0),
            end_offset=Offset(len(numbers) * _RECORDS),
        )
        index += 1


def _send(batch: _Batch, kind: OperationType, index: int) -> SendOperation:
    attempt = Attempt(
        node=_LEADER,
        leader_epoch=_EPOCH,
        producer_id=_PRODUCER,
        producer_epoch=ProducerEpoch(0),
        base_sequence=batch.base_offset,
        crc=batch.crc,
        outcome="NONE",
    )
    is_done = kind is OperationType.OK
    return SendOperation(
        index=index,
        time_ns=index,
        type=kind,
        process="producer-0",
        operation_id=CauseId(f"producer-0:{batch.number}"),
        **_of(batch.partition),
        acks=-1,
        first_record_id=batch.number * _RECORDS,
        record_count=_RECORDS,
        base_offset=batch.base_offset if is_done else None,
        attempts=(attempt,) if is_done else (),
    )


def _poll(polled: list[_Batch], index: int, *, end: Offset) -> PollOperation:
    first = polled[0]
    return PollOperation(
        index=index,
        time_ns=index,
        type=OperationType.OK,
        process="final",
        operation_id=CauseId(f"final:{first.partition}:{first.base_offset}"),
        phase="final",
        **_of(first.partition),
        node=_LEADER,
        position=first.base_offset,
        seek=first.base_offset == 0,
        high_watermark=end,
        log_start_offset=Offset(0),
        leader_epoch=_EPOCH,
        batches=tuple(
            PolledBatch(
                base_offset=batch.base_offset,
                last_offset=Offset(batch.end - 1),
                leader_epoch=_EPOCH,
                crc=batch.crc,
                producer="producer-0",
                first_record_id=batch.number * _RECORDS,
                record_count=_RECORDS,
            )
            for batch in polled
        ),
    )
