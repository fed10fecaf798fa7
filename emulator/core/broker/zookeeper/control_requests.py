"""From LeaderAndIsr and StopReplica to roles: the front of a ZooKeeper broker (``becomeLeaderOrFollower``).

In a KRaft cluster ``Assignment`` acts on the difference of two images; here the controller orders each role in a
request, and epochs identify outdated requests. Both end in ``Partition.become_leader`` and ``become_follower``.

Logs are loaded before the broker receives any request, so they wait under their names until they get a role. A log that
gets no role is a stray: it is kept but not served, and becomes the data of the next partition of that name, unless a
complete list of replicas shows that it does not belong here (``full_list``).
"""

from collections.abc import Iterable

import msgspec

from laststand.emulator.core import effects, events, inputs
from laststand.emulator.core.broker.replicas.config import BrokerConfig
from laststand.emulator.core.broker.replicas.fetcher import FetcherPool
from laststand.emulator.core.broker.replicas.hosted import HostedPartitions
from laststand.emulator.core.broker.replicas.log_opening import create_log, open_log
from laststand.emulator.core.broker.replicas.partition import Partition
from laststand.emulator.core.broker.replicas.replica_log import ReplicaLog
from laststand.emulator.core.broker.replicas.stray_cleanup import StrayLogs
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.broker.zookeeper.control_fence import ControlFence
from laststand.emulator.core.broker.zookeeper.full_list import LocalLog, listed, names_all_replicas, strays_of
from laststand.emulator.core.broker.zookeeper.metadata_cache import MetadataCache, id_by_name, real_topic_id
from laststand.emulator.core.effective_config import DynamicConfig, effective_topic_properties
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.image import PartitionState
from laststand.emulator.core.properties import TopicProperties
from laststand.emulator.core.types import (
    LeaderEpoch,
    LeaderRecoveryState,
    LogDeletedReason,
    PartitionEpoch,
    StrayReason,
    TopicId,
    TopicPartition,
)
from laststand.emulator.core.zookeeper import control_messages
from laststand.emulator.core.zookeeper.identifiers import ControllerEpoch
from laststand.emulator.core.zookeeper.rules import (
    EqualEpochLeaderAndIsr,
    LeaderRecovery,
    StopReplicaFence,
    ZooKeeperRules,
)

_NO_EPOCH = LeaderEpoch(-1)


class RolesTaken(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to LeaderAndIsr, the partitions that this broker began to lead, and those that it leads as before."""

    response: control_messages.LeaderAndIsrResponse
    new_leaderships: tuple[Partition, ...] = ()
    repeated_leaderships: tuple[Partition, ...] = ()


class ControlRequests:
    """Applies control requests to the hosted partitions, the fetchers, the metadata and the logs that wait.

    Attributes:
        waiting: logs that were found at start and have no role yet.
        has_failed_directory: whether a directory failed, so that a missing log may lie there.
    """

    def __init__(
        self,
        config: BrokerConfig,
        rules: ZooKeeperRules,
        *,
        fence: ControlFence,
        cache: MetadataCache,
        hosted: HostedPartitions,
        fetchers: FetcherPool,
        strays: StrayLogs,
        configs: DynamicConfig,
        is_migrating: bool = False,
    ) -> None:
        self._config = config
        self._rules = rules
        self._fence = fence
        self._cache = cache
        self._hosted = hosted
        self._fetchers = fetchers
        self._strays = strays
        self._configs = configs
        self._is_migrating = is_migrating
        self._deciders: dict[TopicPartition, ControllerEpoch] = {}
        self._reported_recovery: dict[TopicPartition, LeaderRecoveryState] = {}
        self.waiting: dict[TopicPartition, inputs.LoadedLog] = {}
        self.has_failed_directory = False

    def add_logs(self, logs: Iterable[inputs.LoadedLog]) -> None:
        """Keeps the logs found at start until roles arrive; strays cannot be identified yet."""
        for loaded in logs:
            topic_id = real_topic_id(loaded.topic_id)
            self.waiting[loaded.partition] = msgspec.structs.replace(loaded, topic_id=topic_id)

    def decider_of(self, name: TopicPartition) -> ControllerEpoch:
        """Returns the epoch of the controller that assigned a partition's role, for the leader's own ISR writes."""
        return self._deciders.get(name, self._fence.controller_epoch)

    def recovery_state_of(self, name: TopicPartition) -> LeaderRecoveryState:
        """Returns a partition's recovery state by this broker; leaders of Kafka's releases report RECOVERED."""
        partition = self._hosted.get(name)
        if self._rules.leader_recovery_state is LeaderRecovery.GATE and partition is not None:
            return partition.leader_recovery_state
        return self._reported_recovery.get(name, LeaderRecoveryState.RECOVERED)

    def topic_properties_of(self, topic: str) -> TopicProperties:
        """Returns a topic's effective properties; the node's where nothing is set, or nothing was read yet."""
        return effective_topic_properties(
            self._configs, topic=topic, node_id=self._config.broker_id, static=self._config.properties
        )

    # --- LeaderAndIsr ---------------------------------------------------------------------------------------------

    def handle_leader_and_isr(self, turn: Turn, request: control_messages.LeaderAndIsrRequest) -> RolesTaken:
        """Applies LeaderAndIsr: first removes strays, then applies the roles, partition by partition."""
        error = self._fence.check(request)
        if error is not ErrorCode.NONE:
            return RolesTaken(response=control_messages.LeaderAndIsrResponse(error=error))
        if names_all_replicas(
            request, believes_kip_550=self._rules.contains_all_replicas, is_migrating=self._is_migrating
        ):
            self._handle_strays(turn, request)
        results = []
        new_leaderships = []
        repeated_leaderships = []
        for wanted in request.partitions:
            former = self._hosted.get(wanted.name)
            was_leader = former is not None and former.is_leader
            if former is not None and was_leader and _is_repeated(wanted, former):
                repeated_leaderships.append(former)
            results.append(
                control_messages.PartitionError(name=wanted.name, error=self._handle_partition(turn, wanted))
            )
            partition = self._hosted.get(wanted.name)
            if partition is not None and partition.is_leader and not was_leader:
                new_leaderships.append(partition)
        response = control_messages.LeaderAndIsrResponse(error=ErrorCode.NONE, partitions=tuple(results))
        return RolesTaken(
            response=response,
            new_leaderships=tuple(new_leaderships),
            repeated_leaderships=tuple(repeated_leaderships),
        )

    def _handle_partition(self, turn: Turn, wanted: control_messages.LeaderAndIsrPartition) -> ErrorCode:
        partition = self._hosted.get(wanted.name)
        if partition is None and self.has_failed_directory and not wanted.is_new and wanted.name not in self.waiting:
            return ErrorCode.KAFKA_STORAGE_ERROR
        topic_id = wanted.topic_id if self._rules.topic_ids else None
        if topic_id is not None and self._topic_id_of(wanted.name) not in (None, topic_id):
            return ErrorCode.INCONSISTENT_TOPIC_ID
        leader_epoch = _NO_EPOCH if partition is None else partition.leader_epoch
        if wanted.leader_epoch < leader_epoch:
            return ErrorCode.STALE_CONTROLLER_EPOCH
        if wanted.leader_epoch == leader_epoch and not self._accepts_equal_epoch(wanted, partition):
            return self._adopt_topic_id(turn, partition, topic_id)
        if self._config.broker_id not in wanted.replicas:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        self._apply_role(turn, wanted, partition or self._host(turn, wanted.name, topic_id), topic_id)
        return ErrorCode.NONE

    def _accepts_equal_epoch(self, wanted: control_messages.LeaderAndIsrPartition, partition: Partition | None) -> bool:
        if self._rules.equal_epoch_leader_and_isr is EqualEpochLeaderAndIsr.IGNORED:
            return False
        return partition is not None and wanted.partition_epoch > partition.partition_epoch

    def _adopt_topic_id(self, turn: Turn, partition: Partition | None, topic_id: TopicId | None) -> ErrorCode:
        """Gives a log without a topic id the request's id, which an upgrade sends in the same epoch; else refuses."""
        if partition is None or topic_id is None or real_topic_id(partition.log.topic_id) is not None:
            return ErrorCode.STALE_CONTROLLER_EPOCH
        self._learn_topic_id(turn, partition, topic_id)
        return ErrorCode.NONE

    def _learn_topic_id(self, turn: Turn, partition: Partition, topic_id: TopicId) -> None:
        """Gives a log its topic id; a follower restarts fetching, as requests without the id name no topic."""
        if partition.log.topic_id == topic_id:
            return
        partition.log.topic_id = topic_id
        self._fetchers.unfollow(partition.name)
        if not partition.is_leader and partition.leader is not None:
            self._fetchers.follow(turn, partition, partition.leader)

    def _apply_role(
        self, turn: Turn, wanted: control_messages.LeaderAndIsrPartition, partition: Partition, topic_id: TopicId | None
    ) -> None:
        if topic_id is not None:
            self._learn_topic_id(turn, partition, topic_id)
        is_leader = wanted.leader == self._config.broker_id
        if not is_leader and not self._cache.is_alive(wanted.leader):
            # The former role and epoch stay: the request is not repeated once the leader is known.
            return
        if not self._rules.leader_and_isr_partition_epoch_check:
            partition.partition_epoch = PartitionEpoch(-1)
        if wanted.partition_epoch < partition.partition_epoch:
            return
        self._deciders[wanted.name] = wanted.controller_epoch
        self._reported_recovery[wanted.name] = self._recovery_known(wanted, is_leader=is_leader)
        state = _state(wanted, partition.log.topic_id)
        if is_leader:
            self._fetchers.unfollow(partition.name)
            partition.become_leader(turn, state)
        else:
            partition.become_follower(turn, state)
            if partition.leader is not None:
                self._fetchers.follow(turn, partition, partition.leader)

    def _recovery_known(
        self, wanted: control_messages.LeaderAndIsrPartition, *, is_leader: bool
    ) -> LeaderRecoveryState:
        is_stored = self._rules.state_format.has_leader_recovery and not is_leader
        return wanted.leader_recovery_state if is_stored else LeaderRecoveryState.RECOVERED

    # --- Logs -----------------------------------------------------------------------------------------------------

    def _topic_id_of(self, name: TopicPartition) -> TopicId | None:
        """Returns the topic id of a partition's log, hosted or waiting; ``None`` without one."""
        partition = self._hosted.get(name)
        if partition is not None:
            return real_topic_id(partition.log.topic_id)
        loaded = self.waiting.get(name)
        return None if loaded is None else loaded.topic_id

    def _host(self, turn: Turn, name: TopicPartition, topic_id: TopicId | None) -> Partition:
        loaded = self.waiting.pop(name, None)
        log = self._open(turn, name, loaded, topic_id)
        partition = Partition(
            log,
            config=self._config,
            registrations=self._cache.eligible,
            topic_properties=self.topic_properties_of(name.topic),
        )
        self._hosted.add(partition)
        return partition

    def _open(
        self, turn: Turn, name: TopicPartition, loaded: inputs.LoadedLog | None, topic_id: TopicId | None
    ) -> ReplicaLog:
        switches = self._config.switches
        if loaded is None:
            return create_log(turn, name, topic_id or id_by_name(name.topic), switches=switches)
        return open_log(turn, loaded, topic_id or loaded.topic_id or id_by_name(name.topic), switches=switches)

    def _handle_strays(self, turn: Turn, request: control_messages.LeaderAndIsrRequest) -> None:
        logs = [LocalLog(name=name, topic_id=loaded.topic_id) for name, loaded in self.waiting.items()]
        logs += [
            LocalLog(name=partition.name, topic_id=self._topic_id_of(partition.name)) for partition in self._hosted
        ]
        for name in strays_of(logs, listed(request)):
            partition = self._hosted.remove(name)
            if partition is not None:
                self._fetchers.unfollow(name)
                turn.turned[name] = None
            loaded = self.waiting.pop(name, None) or _as_loaded(partition)
            if loaded is not None:
                self._strays.handle_stray(turn, loaded, StrayReason.NOT_A_REPLICA)

    # --- UpdateMetadata -------------------------------------------------------------------------------------------

    def handle_update_metadata(
        self, turn: Turn, request: control_messages.UpdateMetadataRequest
    ) -> tuple[control_messages.UpdateMetadataResponse, tuple[TopicPartition, ...]]:
        """Updates the metadata cache; returns the answer, and the partitions that are being deleted."""
        error = self._fence.check(request)
        if error is not ErrorCode.NONE:
            return control_messages.UpdateMetadataResponse(error=error), ()
        deleted = self._cache.update(request)
        for partition in self._hosted:
            if partition.is_leader:
                # A replica that the high watermark waited for, as it could join the ISR, may be gone now (KAFKA-15021).
                partition.advance_high_watermark(turn)
        return control_messages.UpdateMetadataResponse(error=ErrorCode.NONE), deleted

    # --- StopReplica ----------------------------------------------------------------------------------------------

    def handle_stop_replica(
        self, turn: Turn, request: control_messages.StopReplicaRequest
    ) -> control_messages.StopReplicaResponse:
        """Stops replicas, which no longer fetch; deletes the logs of those that the request marks for deletion."""
        error = self._fence.check(request)
        if error is not ErrorCode.NONE:
            return control_messages.StopReplicaResponse(error=error)
        results = []
        for stopped in request.partitions:
            error = self._stop_error(stopped)
            results.append(control_messages.PartitionError(name=stopped.name, error=error))
            if error is ErrorCode.NONE:
                self._stop(turn, stopped)
        return control_messages.StopReplicaResponse(error=ErrorCode.NONE, partitions=tuple(results))

    def _stop_error(self, stopped: control_messages.StopReplicaPartition) -> ErrorCode:
        partition = self._hosted.get(stopped.name)
        if partition is None or isinstance(stopped.leader_epoch, control_messages.StopReplicaEpoch):
            return ErrorCode.NONE
        match self._rules.stop_replica_epoch:
            case StopReplicaFence.OFF:
                is_taken = True
            case StopReplicaFence.GREATER:
                is_taken = stopped.leader_epoch > partition.leader_epoch
            case StopReplicaFence.NOT_LOWER:
                is_taken = stopped.leader_epoch >= partition.leader_epoch
        return ErrorCode.NONE if is_taken else ErrorCode.FENCED_LEADER_EPOCH

    def _stop(self, turn: Turn, stopped: control_messages.StopReplicaPartition) -> None:
        self._fetchers.unfollow(stopped.name)
        if not stopped.is_deleted:
            return
        partition = self._hosted.remove(stopped.name)
        loaded = self.waiting.pop(stopped.name, None) or _as_loaded(partition)
        if loaded is None:
            return
        self._deciders.pop(stopped.name, None)
        self._reported_recovery.pop(stopped.name, None)
        turn.turned[stopped.name] = None
        turn.write(effects.DeleteLog(partition=stopped.name))
        turn.record(
            events.LogDeleted(
                cause_id=turn.cause_id,
                topic=stopped.name.topic,
                partition=stopped.name.partition,
                topic_id=loaded.topic_id or id_by_name(stopped.name.topic),
                reason=LogDeletedReason.DELETED,
                log_end_offset=loaded.log_end_offset,
            )
        )


def _is_repeated(wanted: control_messages.LeaderAndIsrPartition, partition: Partition) -> bool:
    """Returns whether a role has the leader's current epochs: no change that the leader asked for was made."""
    known = (partition.leader_epoch, partition.partition_epoch)
    return (wanted.leader_epoch, wanted.partition_epoch) == known


def _state(wanted: control_messages.LeaderAndIsrPartition, topic_id: TopicId) -> PartitionState:
    return PartitionState(
        topic_id=topic_id,
        replicas=wanted.replicas,
        isr=wanted.isr,
        leader=wanted.leader,
        leader_epoch=wanted.leader_epoch,
        partition_epoch=wanted.partition_epoch,
        leader_recovery_state=wanted.leader_recovery_state,
    )


def _as_loaded(partition: Partition | None) -> inputs.LoadedLog | None:
    """Returns a hosted partition's log in the form that events about removed logs need."""
    if partition is None:
        return None
    log = partition.log
    return inputs.LoadedLog(
        partition=log.partition,
        topic_id=real_topic_id(log.topic_id),
        is_clean=True,
        batches=(),
        log_start_offset=log.log_start_offset,
        log_end_offset=log.log_end_offset,
        epochs=log.epochs.entries,
        log_start_checkpoint=log.log_start_offset,
        high_watermark_checkpoint=log.high_watermark,
        recovery_point=log.log_end_offset,
    )
