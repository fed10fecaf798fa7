"""From a metadata difference to roles: which partitions this broker hosts, leads and follows (``ReplicaManager``).

The broker acts only on differences: first on the whole image, once the logs are loaded, then on one difference per
input. A difference may cover several records; what is done depends on epochs, not on the number of records.
"""

from laststand.emulator.core import effects, events, inputs
from laststand.emulator.core.broker.kraft.stray import stray_reason
from laststand.emulator.core.broker.replicas.config import BrokerConfig
from laststand.emulator.core.broker.replicas.delayed_fetch import FetchHandler
from laststand.emulator.core.broker.replicas.fetcher import FetcherPool
from laststand.emulator.core.broker.replicas.hosted import HostedPartitions
from laststand.emulator.core.broker.replicas.log_opening import create_log, open_log
from laststand.emulator.core.broker.replicas.partition import Partition
from laststand.emulator.core.broker.replicas.replica_log import ReplicaLog
from laststand.emulator.core.broker.replicas.stray_cleanup import StrayLogs
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.effective_config import effective_topic_properties
from laststand.emulator.core.image import ImageDelta, PartitionDelta, PartitionState
from laststand.emulator.core.properties import TopicProperties
from laststand.emulator.core.types import ConfigResource, LogDeletedReason, TopicId, TopicPartition


class Assignment:
    """Applies differences to the hosted partitions and to the fetchers."""

    def __init__(
        self,
        config: BrokerConfig,
        hosted: HostedPartitions,
        fetchers: FetcherPool,
        fetches: FetchHandler,
        strays: StrayLogs,
    ) -> None:
        self._config = config
        self._hosted = hosted
        self._fetchers = fetchers
        self._fetches = fetches
        self._strays = strays
        self._new_leaderships: list[Partition] = []
        self._unconfigured: set[TopicPartition] = set()

    def adopt(self, turn: Turn, logs: tuple[inputs.LoadedLog, ...]) -> None:
        """Hosts the logs found at start that are assigned to this broker, and treats the others as strays."""
        for loaded in logs:
            reason = stray_reason(loaded, self._hosted.image, self._config.broker_id)
            if reason is not None:
                self._strays.handle_stray(turn, loaded, reason)
            elif loaded.topic_id is not None:
                self._host(open_log(turn, loaded, loaded.topic_id, switches=self._config.switches))

    def _log(self, turn: Turn, name: TopicPartition, kept: inputs.LoadedLog | None, topic_id: TopicId) -> ReplicaLog:
        switches = self._config.switches
        if kept is None:
            return create_log(turn, name, topic_id, switches=switches)
        return open_log(turn, kept, topic_id, switches=switches)

    def give_up_missing(self) -> None:
        """Notes that assigned logs which were not found may lie in a directory that failed.

        A new, empty log would let this broker be an ISR member without records (``LogManager.getOrCreateLog``).
        """
        for name, state in self._hosted.image.partitions.items():
            if self._config.broker_id in state.replicas and self._hosted.get(name) is None:
                self._hosted.out_of_reach.add((name, state.topic_id))

    def _host(self, log: ReplicaLog) -> Partition:
        partition = Partition(
            log,
            config=self._config,
            registrations=self._hosted.image.brokers,
            topic_properties=self.topic_properties_of(log.partition.topic),
        )
        self._hosted.add(partition)
        return partition

    def apply(self, turn: Turn, delta: ImageDelta, *, is_last: bool) -> None:
        """Acts on a difference: configuration, removals and roles, then changes of other brokers' registrations.

        A new ISR is never compared with a min ISR that was replaced before that ISR was committed (S38). Nor is an old
        ISR, whose replacement is in a later part of the difference, compared with a min ISR that may be newer.

        Args:
            turn: the step.
            delta: the difference, or a part of it, such as one partition.
            is_last: whether this is the last part of the difference.
        """
        configured = self._apply_configs(delta)
        self._new_leaderships += [
            partition
            for name, change in delta.partitions.items()
            if (partition := self._apply_partition(turn, name, change)) is not None
        ]
        # A parked fetch has several partitions: it is answered once all of them have the roles in metadata.
        if is_last:
            for partition in self._new_leaderships:
                self._fetches.release_followers(turn, partition)
            self._new_leaderships.clear()
        for partition in configured:
            if partition.is_leader and self._hosted.get(partition.name) is partition:
                # A lowered min ISR may let waiting records commit; no other event would check that.
                partition.advance_high_watermark(turn)
        if delta.brokers:
            # A replica that the high watermark waited for, as it could join the ISR, may be fenced now (KAFKA-15021).
            for partition in self._hosted:
                if partition.is_leader:
                    partition.advance_high_watermark(turn)
        self._stop_fetching_when_leaving()

    def _apply_partition(self, turn: Turn, name: TopicPartition, change: PartitionDelta) -> Partition | None:
        """Applies a partition's new state; returns the partition if this broker starts to lead it."""
        state = change.after
        partition = self._hosted.get(name)
        is_replica = state is not None and self._config.broker_id in state.replicas
        if partition is not None and (state is None or not is_replica or state.topic_id != partition.log.topic_id):
            self._remove(turn, partition)
            partition = None
        if state is None or not is_replica or (name, state.topic_id) in self._hosted.out_of_reach:
            return None
        if partition is None:
            kept = self._strays.pop_retained(name)
            partition = self._host(self._log(turn, name, kept, state.topic_id))
        was_leader = partition.is_leader
        self._apply_role(turn, partition, state)
        return partition if partition.is_leader and not was_leader else None

    def _apply_role(self, turn: Turn, partition: Partition, state: PartitionState) -> None:
        if state.leader == self._config.broker_id:
            self._fetchers.unfollow(partition.name)
            partition.become_leader(turn, state)
            return
        partition.become_follower(turn, state)
        if partition.is_leader:
            return
        if partition.leader is None:
            self._fetchers.unfollow(partition.name)
        else:
            self._fetchers.follow(turn, partition, partition.leader)

    def _remove(self, turn: Turn, partition: Partition) -> None:
        self._fetchers.unfollow(partition.name)
        self._hosted.remove(partition.name)
        turn.turned[partition.name] = None
        turn.write(effects.DeleteLog(partition=partition.name))
        turn.record(
            events.LogDeleted(
                cause_id=turn.cause_id,
                topic=partition.name.topic,
                partition=partition.name.partition,
                topic_id=partition.log.topic_id,
                reason=LogDeletedReason.DELETED,
                log_end_offset=partition.log.log_end_offset,
            )
        )

    def _apply_configs(self, delta: ImageDelta) -> list[Partition]:
        """Configures and returns partitions; a partition with a change in a later part is configured with that part."""
        image = self._hosted.image
        everywhere = any(resource is ConfigResource.BROKER for resource, _ in delta.configs)
        if everywhere:
            self._fetches.quota.reconfigure(image)
            self._fetchers.quota.reconfigure(image)
        topics = {name for resource, name in delta.configs if resource is ConfigResource.TOPIC}
        if topics or everywhere:
            self._unconfigured |= {each.name for each in self._hosted if everywhere or each.name.topic in topics}
        if not self._unconfigured:
            return []
        configured = [
            each for each in self._hosted if each.name in self._unconfigured and not image.has_change_of(each.name)
        ]
        for partition in configured:
            partition.topic_properties = self.topic_properties_of(partition.name.topic)
        self._unconfigured.difference_update([partition.name for partition in configured])
        return configured

    def topic_properties_of(self, topic: str) -> TopicProperties:
        """Returns a topic's effective properties by the image; the node's where nothing is set."""
        config = self._config
        return effective_topic_properties(
            self._hosted.image, topic=topic, node_id=config.broker_id, static=config.properties
        )

    def _stop_fetching_when_leaving(self) -> None:
        """In controlled shutdown, the broker keeps fetching only partitions whose ISR it is still in.

        The registration of an earlier incarnation, which may still be there at start, says nothing about this one.
        """
        own = self._config.broker_id
        registration = self._hosted.image.brokers.get(own)
        if registration is None or registration.incarnation_id != self._config.incarnation_id:
            return
        if not registration.in_controlled_shutdown:
            return
        for name in list(self._fetchers.followed):
            state = self._hosted.image.partitions.get(name)
            if state is None or own not in state.isr:
                self._fetchers.unfollow(name)
