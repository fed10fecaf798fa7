"""Reads log directories and says of each partition what electing each of its replicas would lose."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from emulator.autopsy.comparison import Log
from emulator.autopsy.eligibility import UNKNOWN_ELIGIBILITY, BrokerEvidence, Eligibility, judge_eligibility
from emulator.autopsy.findings import (
    AutopsyReport,
    CandidateReport,
    CommittedState,
    EpochStart,
    ExaminedDirectory,
    MetadataSource,
    PartitionAutopsy,
)
from emulator.autopsy.log_directories import LogDirectoryFacts
from emulator.autopsy.replica_reader import CrcScope, ReplicaReading, read_replica
from emulator.autopsy.weighing import Weighing, weigh
from emulator.core.controller.min_isr import MIN_ISR
from emulator.core.controller.unclean_config import UNCLEAN_ELECTION
from emulator.core.effective_config import CLUSTER
from emulator.core.errors import StorageError
from emulator.core.image import MetadataImage, PartitionState
from emulator.core.metadata_version import ELR_VERSION
from emulator.core.types import BrokerId, ConfigResource, Offset, TopicId, TopicPartition
from emulator.kafka.metadata_copy import MetadataCopy, fold, read_metadata_copy

_READERS: Final = 16
"""Segments that are read at a time: a disk that is asked for many things at once answers more of them."""

_PARTITIONS_AT_ONCE: Final = 4


class _Metadata(NamedTuple):
    copy: MetadataCopy
    image: MetadataImage


class _Replica(NamedTuple):
    directory: LogDirectoryFacts
    folder: Path
    reading: ReplicaReading

    @property
    def broker_id(self) -> BrokerId:
        return BrokerId(self.directory.node_id)


def examine(
    directories: Sequence[LogDirectoryFacts],
    *,
    scope: CrcScope = CrcScope.TAIL,
    only: frozenset[TopicPartition] | None = None,
) -> AutopsyReport:
    """Returns what log directories hold. Nothing is changed on disk.

    Args:
        directories: of the brokers of one cluster.
        scope: which batches are compared with their CRC.
        only: the partitions to look at; ``None`` is all.

    What cannot be read is a problem in the report, and the rest is looked at all the same.
    """
    problems = [problem for directory in directories for problem in directory.problems]
    problems += _strangers(directories)
    metadata = _newest_metadata(directories, problems)
    folders: dict[TopicPartition, list[tuple[LogDirectoryFacts, Path]]] = {}
    for directory in directories:
        for partition, folder in directory.partitions():
            if only is None or partition in only:
                folders.setdefault(partition, []).append((directory, folder))
    partitions: list[PartitionAutopsy] = []
    with ThreadPoolExecutor(_READERS) as readers, ThreadPoolExecutor(_PARTITIONS_AT_ONCE) as examiners:

        def examine_one(
            entry: tuple[TopicPartition, list[tuple[LogDirectoryFacts, Path]]],
        ) -> tuple[list[PartitionAutopsy], list[str]]:
            partition, found = entry
            replicas, unread = _read_replicas(partition, found, scope, readers)
            return list(_examine_partition(partition, replicas, metadata)), unread

        for examined, unread in examiners.map(examine_one, sorted(folders.items())):
            partitions += examined
            problems += unread
    return AutopsyReport(
        directories=tuple(_examined(directory) for directory in directories),
        metadata=None if metadata is None else _source(metadata),
        partitions=tuple(partitions),
        problems=tuple(problems),
    )


def _strangers(directories: Sequence[LogDirectoryFacts]) -> Iterator[str]:
    clusters = sorted({directory.cluster_id for directory in directories if directory.cluster_id is not None})
    if len(clusters) > 1:
        yield f"the directories are of {len(clusters)} clusters: {', '.join(clusters)}"


def _newest_metadata(directories: Sequence[LogDirectoryFacts], problems: list[str]) -> _Metadata | None:
    copies: list[MetadataCopy] = []
    for directory in directories:
        if directory.metadata_log is not None:
            try:
                copies.append(read_metadata_copy(directory.metadata_log))
            except StorageError as error:
                problems.append(f"the metadata log cannot be read: {error}")
    newest = max(copies, key=lambda copy: copy.end_offset, default=None)
    if newest is None:
        return None
    try:
        return _Metadata(newest, fold(newest))
    except StorageError as error:
        problems.append(f"the metadata log cannot be read: {error}")
        return None


def _read_replicas(
    partition: TopicPartition,
    found: Sequence[tuple[LogDirectoryFacts, Path]],
    scope: CrcScope,
    readers: Executor,
) -> tuple[list[_Replica], list[str]]:
    """Returns the replicas of a partition that can be read, one of each broker, and why others cannot."""
    replicas: list[_Replica] = []
    problems: list[str] = []
    brokers: set[int] = set()
    for directory, folder in found:
        if directory.node_id in brokers:
            problems.append(
                f"{folder}: broker {directory.node_id} has another log of {partition}; this one is left out"
            )
            continue
        try:
            reading = read_replica(
                folder,
                checkpointed_start=directory.log_start_offsets.get(partition, Offset(0)),
                recovery_point=directory.recovery_points.get(partition),
                scope=scope,
                readers=readers,
            )
        except StorageError as error:
            problems.append(str(error))
            continue
        brokers.add(directory.node_id)
        replicas.append(_Replica(directory, folder, reading))
    return replicas, problems


def _examine_partition(
    partition: TopicPartition, replicas: Sequence[_Replica], metadata: _Metadata | None
) -> Iterator[PartitionAutopsy]:
    for topic_id in sorted({replica.reading.topic_id for replica in replicas}, key=str):
        same = [replica for replica in replicas if replica.reading.topic_id == topic_id]
        yield _examine_topic(partition, topic_id, same, metadata)


def _examine_topic(
    partition: TopicPartition, topic_id: TopicId | None, replicas: Sequence[_Replica], metadata: _Metadata | None
) -> PartitionAutopsy:
    state = None if metadata is None else metadata.image.partitions.get(partition)
    if state is not None and topic_id not in (None, state.topic_id):
        state = None
    assignment = () if state is None else state.replicas

    def preference(replica: _Replica) -> tuple[int, int]:
        broker_id = replica.broker_id
        return assignment.index(broker_id) if broker_id in assignment else len(assignment), broker_id

    is_compacted = any(replica.reading.log.has_gaps for replica in replicas)
    logs: dict[BrokerId, Log] = {replica.broker_id: replica.reading.log for replica in sorted(replicas, key=preference)}
    high_watermarks = {
        replica.broker_id: high_watermark
        for replica in replicas
        if (high_watermark := replica.directory.high_watermarks.get(partition)) is not None
    }
    weighing = weigh(logs, high_watermarks, is_compacted=is_compacted)
    return PartitionAutopsy(
        topic=partition.topic,
        partition=partition.partition,
        topic_id=topic_id,
        is_compacted=is_compacted,
        committed=None if metadata is None or state is None else _committed(partition, state, metadata.image),
        candidates=tuple(
            _candidate(partition, replica, weighing, _eligibility(state, replica, metadata))
            for replica in sorted(replicas, key=lambda replica: replica.broker_id)
        ),
        longest=weighing.longest,
        highest_high_watermark=max(high_watermarks.values(), default=None),
    )


def _eligibility(state: PartitionState | None, replica: _Replica, metadata: _Metadata | None) -> Eligibility:
    if metadata is None:
        return UNKNOWN_ELIGIBILITY
    if state is None:
        return msgspec.structs.replace(UNKNOWN_ELIGIBILITY, reason="the metadata log does not have this partition")
    registration = metadata.image.brokers.get(replica.broker_id)
    evidence = BrokerEvidence(
        registered_epoch=None if registration is None else registration.broker_epoch,
        clean_epoch=replica.directory.clean_broker_epoch,
    )
    return judge_eligibility(state, replica.broker_id, evidence, elr_level=metadata.image.feature_level(ELR_VERSION))


def _candidate(
    partition: TopicPartition, replica: _Replica, weighing: Weighing, eligibility: Eligibility
) -> CandidateReport:
    directory, folder, reading = replica
    log = reading.log
    return CandidateReport(
        broker_id=replica.broker_id,
        folder=str(folder),
        log_start_offset=log.log_start_offset,
        log_end_offset=log.log_end_offset,
        last_leader_epoch=log.last_leader_epoch,
        epochs=tuple(
            EpochStart(leader_epoch=entry.leader_epoch, start_offset=entry.start_offset) for entry in log.epochs
        ),
        high_watermark=directory.high_watermarks.get(partition),
        recovery_point=directory.recovery_points.get(partition),
        is_clean=directory.is_clean,
        segments=reading.segments,
        batches=len(log.batches),
        records=int(log.batches["record_count"][~log.batches["is_control"]].sum()),
        file_bytes=reading.file_bytes,
        crc_checked_bytes=reading.crc_checked_bytes,
        damage=reading.damage,
        eligibility=eligibility,
        losses=weighing.losses[replica.broker_id],
        lost_against_longest=weighing.against_longest(replica.broker_id),
        lost_committed=weighing.committed(replica.broker_id),
    )


def _committed(partition: TopicPartition, state: PartitionState, image: MetadataImage) -> CommittedState:
    def configured(name: str) -> str | None:
        on_topic = image.config(ConfigResource.TOPIC, partition.topic, name)
        return image.config(ConfigResource.BROKER, CLUSTER, name) if on_topic is None else on_topic

    return CommittedState(
        replicas=state.replicas,
        isr=state.isr,
        elr=state.elr,
        last_known_leader=state.last_known_leader,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        leader_recovery_state=state.leader_recovery_state,
        min_insync_replicas=configured(MIN_ISR),
        unclean_leader_election_enable=configured(UNCLEAN_ELECTION),
    )


def _examined(directory: LogDirectoryFacts) -> ExaminedDirectory:
    return ExaminedDirectory(
        path=str(directory.path),
        node_id=directory.node_id,
        cluster_id=directory.cluster_id,
        is_clean=directory.is_clean,
        clean_broker_epoch=directory.clean_broker_epoch,
    )


def _source(metadata: _Metadata) -> MetadataSource:
    return MetadataSource(
        path=metadata.copy.directory,
        end_offset=metadata.copy.end_offset,
        elr_level=metadata.image.feature_level(ELR_VERSION),
        problem=metadata.copy.problem,
    )
