"""Reads log directories and says of each partition what electing each of its replicas would lose."""

import contextlib
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from laststand.emulator.autopsy.bring_back import brokers_to_return
from laststand.emulator.autopsy.broker_logs import BrokerLog, choose_logs
from laststand.emulator.autopsy.comparison import Log
from laststand.emulator.autopsy.eligibility import UNKNOWN_ELIGIBILITY, BrokerEvidence, Eligibility, judge_eligibility
from laststand.emulator.autopsy.findings import (
    AutopsyReport,
    CandidateReport,
    CommittedState,
    EpochStart,
    ExaminedDirectory,
    MetadataSource,
    PartitionAutopsy,
    SeveralLogs,
    UnreadReplica,
)
from laststand.emulator.autopsy.log_directories import LogDirectoryFacts
from laststand.emulator.autopsy.metadata_logs import compare_metadata_logs
from laststand.emulator.autopsy.replica_reader import CrcScope, ReplicaReading, read_replica, topic_id_of
from laststand.emulator.autopsy.weighing import ReplicaLog, Weighing, weigh
from laststand.emulator.core.controller.min_isr import MIN_ISR
from laststand.emulator.core.controller.unclean_config import UNCLEAN_ELECTION
from laststand.emulator.core.effective_config import CLUSTER
from laststand.emulator.core.errors import EmulatorError, StorageError, shown
from laststand.emulator.core.image import MetadataImage, PartitionState
from laststand.emulator.core.metadata_version import ELR_VERSION
from laststand.emulator.core.types import BrokerId, ConfigResource, Offset, TopicId, TopicPartition
from laststand.emulator.kafka.metadata_copy import MetadataCopy, fold, read_metadata_copy, replica_directories
from laststand.emulator.storage.clean_shutdown import previous_broker_epoch

_READERS: Final = 16
"""Segments that are read at a time: a disk that is asked for many things at once answers more of them."""

_PARTITIONS_AT_ONCE: Final = 4


class _Metadata(NamedTuple):
    copy: MetadataCopy
    image: MetadataImage
    directories: dict[tuple[TopicId, int], dict[BrokerId, str]]


class _Replica(NamedTuple):
    directory: LogDirectoryFacts
    folder: Path
    reading: ReplicaReading

    @property
    def broker_id(self) -> BrokerId:
        return BrokerId(self.directory.node_id)

    @property
    def name(self) -> ReplicaLog:
        return ReplicaLog(self.broker_id, str(self.folder))


_Found = Sequence[tuple[LogDirectoryFacts, Path]]
"""The folders of a partition."""


class _Examined(NamedTuple):
    partitions: list[PartitionAutopsy]
    several_logs: list[SeveralLogs]
    unread: list[UnreadReplica]


def examine(
    directories: Sequence[LogDirectoryFacts],
    *,
    scope: CrcScope = CrcScope.TAIL,
    only: frozenset[TopicPartition] | None = None,
) -> AutopsyReport:
    """Returns the facts about log directories. Nothing is changed on disk.

    Args:
        directories: of the brokers of one cluster.
        scope: which batches are compared with their CRC.
        only: the partitions to look at; ``None`` is all.

    Unreadable files are problems in the report, and the rest is still examined.
    """
    problems = [problem for directory in directories for problem in directory.problems]
    problems += _strangers(directories)
    metadata = _newest_metadata(directories, problems)
    folders: dict[TopicPartition, list[tuple[LogDirectoryFacts, Path]]] = {}
    for directory in directories:
        for partition, folder in directory.partitions():
            if only is None or partition in only:
                folders.setdefault(partition, []).append((directory, folder))
    found = _Examined([], [], [])
    with _threads(_READERS) as readers, _threads(_PARTITIONS_AT_ONCE) as examiners:

        def examine_one(entry: tuple[TopicPartition, _Found]) -> _Examined:
            return _examine_partition(*entry, metadata=metadata, directories=directories, scope=scope, readers=readers)

        for examined in examiners.map(examine_one, sorted(folders.items())):
            found.partitions.extend(examined.partitions)
            found.several_logs.extend(examined.several_logs)
            found.unread.extend(examined.unread)
    return AutopsyReport(
        directories=tuple(_examined(directory) for directory in directories),
        metadata=None if metadata is None else _source(metadata, directories),
        partitions=tuple(found.partitions),
        brokers_to_return=brokers_to_return(found.partitions),
        several_logs=tuple(found.several_logs),
        unread=tuple(found.unread),
        problems=(*problems, *(each.reason for each in found.unread)),
    )


@contextlib.contextmanager
def _threads(count: int) -> Iterator[Executor]:
    """Yields threads; if the user of the threads is interrupted, jobs that wait for a thread are dropped."""
    threads = ThreadPoolExecutor(count)
    try:
        yield threads
    except BaseException:
        threads.shutdown(wait=False, cancel_futures=True)
        raise
    threads.shutdown()


def _strangers(directories: Sequence[LogDirectoryFacts]) -> Iterator[str]:
    clusters = sorted({directory.cluster_id for directory in directories if directory.cluster_id is not None})
    if len(clusters) > 1:
        yield f"the directories are of {len(clusters)} clusters: {', '.join(map(shown, clusters))}"


def _newest_metadata(directories: Sequence[LogDirectoryFacts], problems: list[str]) -> _Metadata | None:
    copies: list[MetadataCopy] = []
    for directory in directories:
        if directory.metadata_log is not None:
            try:
                copies.append(read_metadata_copy(directory.metadata_log))
            except StorageError as error:
                problems.append(f"the metadata log cannot be read: {error}")
    # A controller that was deposed may have a longer log, whose end was never committed.
    newest = max(copies, key=lambda copy: (copy.last_epoch, copy.end_offset), default=None)
    if newest is None:
        return None
    try:
        return _Metadata(newest, fold(newest), replica_directories(newest))
    except StorageError as error:
        problems.append(f"the metadata log cannot be read: {error}")
        return None


def _examine_partition(
    partition: TopicPartition,
    found: _Found,
    *,
    metadata: _Metadata | None,
    directories: Sequence[LogDirectoryFacts],
    scope: CrcScope,
    readers: Executor,
) -> _Examined:
    state = None if metadata is None else metadata.image.partitions.get(partition)
    chosen, several_logs, unread = _choose(partition, found, state, metadata)
    replicas: list[_Replica] = []
    for directory, folder in chosen:
        try:
            reading = read_replica(
                folder,
                checkpointed_start=directory.log_start_offsets.get(partition, Offset(0)),
                recovery_point=directory.recovery_points.get(partition),
                scope=scope,
                readers=readers,
            )
        except StorageError as error:
            unread.append(_unread(partition, directory, folder, str(error)))
        else:
            replicas.append(_Replica(directory, folder, reading))
    unread_brokers = tuple(sorted({each.broker_id for each in unread}))
    autopsies = []
    named = None if state is None else state.topic_id
    ids = {replica.reading.topic_id for replica in replicas}
    for topic_id in sorted(ids, key=lambda each: (each != named, str(each))):
        same = [replica for replica in replicas if replica.reading.topic_id == topic_id]
        autopsies.append(
            _examine_topic(partition, topic_id, same, metadata=metadata, directories=directories, unread=unread_brokers)
        )
    return _Examined(autopsies, several_logs, unread)


def _choose(
    partition: TopicPartition, found: _Found, state: PartitionState | None, metadata: _Metadata | None
) -> tuple[list[tuple[LogDirectoryFacts, Path]], list[SeveralLogs], list[UnreadReplica]]:
    """Returns the logs to compare, the brokers that have several, and the logs whose topic cannot be read.

    Logs of another topic with the name are compared, too: they are another partition in the report.
    """
    unread: list[UnreadReplica] = []
    logs: dict[BrokerId, list[BrokerLog]] = {}
    for directory, folder in found:
        try:
            log = BrokerLog(directory, folder, topic_id_of(folder))
        except OSError as error:
            reason = f"{error.filename or folder}: {error.strerror or error}"
            unread.append(_unread(partition, directory, folder, reason))
        else:
            logs.setdefault(BrokerId(directory.node_id), []).append(log)
    topic_id = None if state is None else state.topic_id
    assigned = {} if metadata is None or topic_id is None else metadata.directories.get((topic_id, partition.partition))
    chosen: list[tuple[LogDirectoryFacts, Path]] = []
    several: list[SeveralLogs] = []
    for broker_id, own in logs.items():
        choice = choose_logs(own, topic_id=topic_id, directory_id=(assigned or {}).get(broker_id))
        of_others = [log for log in choice.others if log.topic_id not in (None, topic_id)]
        chosen += [(log.directory, log.folder) for log in (*choice.logs, *of_others)]
        if len(own) > 1:
            several.append(
                SeveralLogs(
                    topic=partition.topic,
                    partition=partition.partition,
                    broker_id=broker_id,
                    folders=tuple(str(log.folder) for log in choice.logs),
                    other_folders=tuple(str(log.folder) for log in choice.others),
                    deciding=choice.deciding,
                )
            )
    return chosen, several, unread


def _unread(partition: TopicPartition, directory: LogDirectoryFacts, folder: Path, reason: str) -> UnreadReplica:
    return UnreadReplica(
        topic=partition.topic,
        partition=partition.partition,
        broker_id=BrokerId(directory.node_id),
        folder=str(folder),
        reason=reason,
    )


def _examine_topic(
    partition: TopicPartition,
    topic_id: TopicId | None,
    replicas: Sequence[_Replica],
    *,
    metadata: _Metadata | None,
    directories: Sequence[LogDirectoryFacts],
    unread: tuple[BrokerId, ...],
) -> PartitionAutopsy:
    state = None if metadata is None else metadata.image.partitions.get(partition)
    is_of_other_topic = state is not None and topic_id not in (None, state.topic_id)
    if is_of_other_topic:
        state = None
    assignment = () if state is None else state.replicas

    def preference(replica: _Replica) -> tuple[int, int]:
        broker_id = replica.broker_id
        return assignment.index(broker_id) if broker_id in assignment else len(assignment), broker_id

    is_compacted = any(replica.reading.log.has_gaps for replica in replicas)
    logs: dict[ReplicaLog, Log] = {replica.name: replica.reading.log for replica in sorted(replicas, key=preference)}
    high_watermarks = {
        replica.name: high_watermark
        for replica in replicas
        if (high_watermark := replica.directory.high_watermarks.get(partition)) is not None
    }
    weighing = weigh(logs, high_watermarks, is_compacted=is_compacted)
    seen = {*unread, *(replica.broker_id for replica in replicas)}
    return PartitionAutopsy(
        topic=partition.topic,
        partition=partition.partition,
        topic_id=topic_id,
        is_of_other_topic=is_of_other_topic,
        is_compacted=is_compacted,
        committed=None if metadata is None or state is None else _committed(partition, state, metadata.image),
        candidates=tuple(
            _candidate(
                partition, replica, weighing, _eligibility(state, replica, directories=directories, metadata=metadata)
            )
            for replica in sorted(replicas, key=lambda replica: replica.name)
        ),
        longest=weighing.longest.broker_id,
        longest_folder=weighing.longest.folder,
        highest_high_watermark=max(high_watermarks.values(), default=None),
        unread=unread,
        absent=tuple(broker_id for broker_id in assignment if broker_id not in seen),
    )


def _eligibility(
    state: PartitionState | None,
    replica: _Replica,
    *,
    directories: Sequence[LogDirectoryFacts],
    metadata: _Metadata | None,
) -> Eligibility:
    if metadata is None:
        return UNKNOWN_ELIGIBILITY
    if state is None:
        return msgspec.structs.replace(UNKNOWN_ELIGIBILITY, reason="the metadata log does not have this partition")
    return judge_eligibility(
        state,
        replica.broker_id,
        _evidence(replica, directories, metadata),
        elr_level=metadata.image.feature_level(ELR_VERSION),
    )


def _evidence(replica: _Replica, directories: Sequence[LogDirectoryFacts], metadata: _Metadata) -> BrokerEvidence:
    """Returns the evidence about a broker's last process, from a log's directory and the broker's other directories."""
    registration = metadata.image.brokers.get(replica.broker_id)
    registered = frozenset[str | None](() if registration is None else registration.log_dirs)
    own = replica.directory
    # What is a copy of the same directory, or none that the broker registered with, is not what it would look into.
    live = [
        own,
        *(
            each
            for each in directories
            if each.node_id == own.node_id and each.directory_id in registered - {own.directory_id}
        ),
    ]
    unseen = registered - {each.directory_id for each in live} if own.directory_id in registered else frozenset()
    return BrokerEvidence(
        registered_epoch=None if registration is None else registration.broker_epoch,
        clean_epoch=previous_broker_epoch(each.clean_broker_epoch for each in live),
        unseen_directories=tuple(sorted(each for each in unseen if each is not None)),
    )


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
        losses=weighing.losses[replica.name],
        lost_against_longest=weighing.against_longest(replica.name),
        lost_committed=weighing.committed(replica.name),
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
        directory_id=directory.directory_id,
        cluster_id=directory.cluster_id,
        is_clean=directory.is_clean,
        clean_broker_epoch=directory.clean_broker_epoch,
    )


def _source(metadata: _Metadata, directories: Sequence[LogDirectoryFacts]) -> MetadataSource:
    voters, committed = _voters_logs(directories)
    return MetadataSource(
        path=metadata.copy.directory,
        end_offset=metadata.copy.end_offset,
        elr_level=metadata.image.feature_level(ELR_VERSION),
        problem=metadata.copy.problem,
        voters=voters,
        committed_end_offset=committed,
    )


def _voters_logs(directories: Sequence[LogDirectoryFacts]) -> tuple[tuple[int, ...], int | None]:
    """Returns which voters' logs there are, and below which offset they prove that records were committed."""
    if sum(directory.metadata_log is not None for directory in directories) < 2:
        return (), None
    try:
        compared = compare_metadata_logs(directories)
    except EmulatorError:
        return (), None
    voters = tuple(int(log.node_id) for log in compared.logs if log.is_voter)
    return voters, int(compared.committed_end_offset) if compared.committed_end_offset else None
