"""Writes a simulated run in the form that verification reads: events, history, the brokers' logs.

::

    history.jsonl
    events/<node>-<incarnation>.jsonl
    nodes/<broker>/data/<topic>-<partition>/{00000000000000000000.log,partition.metadata}
    nodes/<controller>/data/__cluster_metadata-0/00000000000000000000.log    of several controllers
    nodes/<broker>/data/{log-start-offset-checkpoint,.kafka_cleanshutdown}

Its logs can be read if the run had batches of real bytes (``BatchBytes`` behind its ``BatchRegistry``).
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from laststand.emulator.client.config import FINAL_CONSUMER
from laststand.emulator.client.records import record_value
from laststand.emulator.core.batch import BatchDescriptor
from laststand.emulator.core.client import steps
from laststand.emulator.core.client.consumer import Phase
from laststand.emulator.core.client.history_lines import history_line
from laststand.emulator.core.history import HistorySealed, Operation
from laststand.emulator.core.quorum.batches import QuorumBatch
from laststand.emulator.core.quorum_controller.values import PLAIN_VALUES
from laststand.emulator.core.records import MetadataBatch
from laststand.emulator.core.types import Acks, MetadataOffset
from laststand.emulator.kafka.metadata_values import KafkaValues
from laststand.emulator.simulator.cluster.cluster import SimulatedCluster
from laststand.emulator.simulator.disk.disk import StoredLog
from laststand.emulator.simulator.nodes.event_log import NS_PER_MS
from laststand.emulator.simulator.quorum.controller_node import QuorumControllerNode
from laststand.emulator.simulator.run.event_files import write_event_files
from laststand.emulator.simulator.run.journal import HistoryEntry, Journal
from laststand.emulator.storage.checkpoints import LOG_START_OFFSET_CHECKPOINT, format_offsets
from laststand.emulator.storage.file_digest import FileDigest
from laststand.emulator.storage.metadata_log import log_content
from laststand.emulator.storage.record_batch import describe_header, stamp
from laststand.emulator.storage.record_codec import ProducerFields, RecordContent, build_batch
from laststand.emulator.storage.segment import LOG_SUFFIX, offset_file_path

_ENCODER: Final = msgspec.json.Encoder()
_RECORD_SIZE: Final = 91
"""Makes a batch as long as one of ``batch_registry`` that has no bytes, so that segments are the same."""

_METADATA: Final = "__cluster_metadata-0"
_LOG_FILE: Final = "00000000000000000000.log"


class BatchBytes:
    """Makes batches of real bytes and keeps them by CRC.

    Args:
        record_sizes: bytes of a record's value, by producer, if not the simulator's default.
    """

    def __init__(self, record_sizes: Mapping[str, int]) -> None:
        self.by_crc: dict[int, bytes] = {}
        self._record_sizes = record_sizes

    def encode(self, producer: str, content: steps.BatchContent) -> BatchDescriptor:
        """Makes a batch and returns its header."""
        size = self._record_sizes.get(producer, _RECORD_SIZE)
        identity = None
        if content.producer_id is not None and content.producer_epoch is not None and content.base_sequence is not None:
            identity = ProducerFields(
                producer_id=content.producer_id,
                producer_epoch=content.producer_epoch,
                base_sequence=content.base_sequence,
            )
        encoded = build_batch(
            [
                RecordContent(value=record_value(producer, record_id, size), timestamp_ms=0)
                for record_id in range(content.first_record_id, content.first_record_id + content.record_count)
            ],
            producer=identity,
            is_transactional=content.is_transactional,
        )
        descriptor = describe_header(encoded, 0)
        self.by_crc[descriptor.crc] = encoded
        return descriptor


def write_evidence(
    directory: Path,
    cluster: SimulatedCluster,
    journal: Journal,
    content: BatchBytes,
    *,
    acks: Mapping[str, Acks],
    problem: str | None,
) -> None:
    """Writes a run that is over into its directory, which exists.

    Args:
        directory: the run's.
        cluster: the cluster whose disks are written.
        journal: of all events and the history.
        content: bytes of all batches.
        acks: of each producer by its name.
        problem: why the plan did not reach its end; ``None`` if it did.

    Raises:
        OSError: a file cannot be written, or exists.
    """
    (directory / "events").mkdir(parents=True, exist_ok=True)
    _write_history(journal, directory, acks)
    by_crc = {**cluster.own_batches, **content.by_crc}
    for node in cluster.nodes.values():
        data = directory / "nodes" / str(node.node_id) / "data"
        data.mkdir(parents=True)
        for partition, log in sorted(node.disk.logs.items()):
            _write_log(data / str(partition), log, by_crc)
        logs = node.disk.logs.items()
        starts = {partition: max(log.log_start_checkpoint, log.segment_base) for partition, log in logs}
        (data / LOG_START_OFFSET_CHECKPOINT).write_text(format_offsets(starts))
        if node.disk.is_clean:
            (data / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":0}')
    for controller in cluster.metadata_nodes.values():
        if isinstance(controller, QuorumControllerNode) and not cluster.is_awaited(controller.node_id):
            data = directory / "nodes" / str(controller.node_id) / "data" / _METADATA
            data.mkdir(parents=True)
            (data / _LOG_FILE).write_bytes(log_content(_as_kafka_writes(controller.disk.batches)))
    write_event_files(journal, directory, problem=problem)


def _as_kafka_writes(batches: Iterable[QuorumBatch]) -> Iterator[QuorumBatch]:
    """Yields the batches of a simulated metadata log, with their values in Kafka's format."""
    written = KafkaValues()
    for batch in batches:
        values: list[bytes] = []
        for offset, value in enumerate(batch.values, batch.base_offset):
            stored = PLAIN_VALUES.decode(value)
            alone = MetadataBatch(base_offset=MetadataOffset(offset), records=(stored.record,))
            values += written.encode(alone, stored.events)
        yield msgspec.structs.replace(batch, values=tuple(values))


def _write_history(journal: Journal, directory: Path, acks: Mapping[str, Acks]) -> None:
    content = _ENCODER.encode_lines(operations(journal, acks))
    digest = FileDigest()
    digest.update(content)
    time_ns = journal.entries[-1].now_ms * NS_PER_MS
    seal = HistorySealed(index=digest.lines, time_ns=time_ns, lines=digest.lines, digest=digest.hexdigest())
    (directory / "history.jsonl").write_bytes(content + _ENCODER.encode(seal) + b"\n")


def operations(journal: Journal, acks: Mapping[str, Acks]) -> tuple[Operation, ...]:
    """Returns the history, as its lines; ``acks`` of each producer by its name."""
    return tuple(_operation(index, entry, acks) for index, entry in enumerate(journal.history))


def _operation(index: int, entry: HistoryEntry, acks: Mapping[str, Acks]) -> Operation:
    now_ms, client, record = entry
    phase = Phase.FINAL if client == FINAL_CONSUMER else Phase.LIVE
    return history_line(
        record,
        index=index,
        time_ns=now_ms * NS_PER_MS,
        process=client,
        acks=acks[client] if isinstance(record, steps.SendRecorded) else None,
        phase=phase.value,
    )


def _write_log(path: Path, log: StoredLog, by_crc: Mapping[int, bytes]) -> None:
    path.mkdir()
    (path / "partition.metadata").write_text(f"version: 0\ntopic_id: {log.topic_id}\n")
    for segment, batches in log.pieces():
        content = b"".join(bytes(stamp(by_crc[batch.crc], batch)) for batch in batches)
        Path(offset_file_path(str(path), segment.base_offset, LOG_SUFFIX)).write_bytes(content)
