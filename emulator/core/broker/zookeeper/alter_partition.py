"""ISR changes on their way to a ZooKeeper controller (Kafka's ``AlterIsrManager``, later ``AlterPartitionManager``).

At most one request is in flight per broker and one change per partition is queued. A change stays until an answer names
its partition. After NOT_CONTROLLER or no answer, all changes stay queued, and are sent again after 50 ms to the broker
that UpdateMetadata names as controller by then.
"""

from typing import Final

from laststand.emulator.core import messages
from laststand.emulator.core.broker.replicas.config import BrokerConfig
from laststand.emulator.core.broker.replicas.isr import IsrProposal
from laststand.emulator.core.broker.zookeeper.metadata_cache import real_topic_id
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import BrokerEpoch, BrokerId, TopicPartition
from laststand.emulator.core.zookeeper.inter_broker_protocol import InterBrokerProtocol
from laststand.emulator.core.zookeeper.rules import ZooKeeperRules

RETRY_BACKOFF_MS: Final = 50
_VERSION_WITH_TOPIC_IDS: Final = 2


class ZooKeeperAlterPartition:
    """The queue of changes, and the controller that they are sent to."""

    def __init__(self, config: BrokerConfig, rules: ZooKeeperRules, ibp: InterBrokerProtocol) -> None:
        self._config = config
        self._controller_max_version = rules.alter_partition_max_version
        self._ibp = ibp
        self._queued: dict[TopicPartition, IsrProposal] = {}
        self._is_in_flight = False
        self._retry_at_ms: int | None = None
        self._controller: BrokerId | None = None

    def next_deadline_ms(self) -> int | None:
        """Returns when to try again, if it waits for that."""
        return self._retry_at_ms

    def controller_to_ask(self, known: BrokerId | None) -> BrokerId | None:
        """Returns the broker that was asked last, else the known controller.

        A broker keeps its connection until the peer answers NOT_CONTROLLER or the connection is lost (Kafka's
        ``BrokerToControllerChannelManager``).
        """
        if self._controller is None:
            self._controller = known
        return self._controller

    def submit(self, proposal: IsrProposal) -> ErrorCode:
        """Queues a change; returns OPERATION_NOT_ATTEMPTED if the partition already has one queued or in flight."""
        if proposal.partition in self._queued:
            return ErrorCode.OPERATION_NOT_ATTEMPTED
        self._queued[proposal.partition] = proposal
        return ErrorCode.NONE

    def pop_due(self, *, broker_epoch: BrokerEpoch, now_ms: int) -> messages.AlterPartitionRequest | None:
        """Returns a request with all queued changes, unless one is in flight or a backoff runs."""
        is_backing_off = self._retry_at_ms is not None and self._retry_at_ms > now_ms
        if self._is_in_flight or not self._queued or is_backing_off:
            return None
        self._is_in_flight = True
        self._retry_at_ms = None
        proposals = tuple(self._queued.values())
        version = self._ibp.alter_partition_version(
            are_topic_ids_known=all(real_topic_id(proposal.topic_id) is not None for proposal in proposals),
            controller_max_version=self._controller_max_version,
        )
        return messages.AlterPartitionRequest(
            broker_id=self._config.broker_id,
            broker_epoch=broker_epoch,
            partitions=tuple(_data(proposal, version) for proposal in proposals),
            api_version=version,
        )

    def answered(
        self, request: messages.AlterPartitionRequest, response: messages.AlterPartitionResponse, *, now_ms: int
    ) -> list[tuple[IsrProposal, messages.AlterPartitionResult]]:
        """Takes answered changes off the queue, before their results are acted on."""
        self._is_in_flight = False
        if response.error is not ErrorCode.NONE:
            if response.error is ErrorCode.NOT_CONTROLLER:
                self._controller = None
            self._retry_at_ms = now_ms + RETRY_BACKOFF_MS
            return []
        answered = []
        for asked, result in zip(request.partitions, response.partitions, strict=True):
            proposal = self._queued.get(TopicPartition(asked.topic, asked.partition))
            if proposal is None:
                continue
            if result.error is ErrorCode.NOT_CONTROLLER:
                self._controller = None
                self._retry_at_ms = now_ms + RETRY_BACKOFF_MS
                continue
            del self._queued[proposal.partition]
            answered.append((proposal, result))
        return answered

    def failed(self, *, now_ms: int) -> None:
        """Handles a request without an answer: all changes stay queued, and are sent again."""
        self._is_in_flight = False
        self._controller = None
        self._retry_at_ms = now_ms + RETRY_BACKOFF_MS

    def handle_timer(self, *, now_ms: int) -> None:
        """Ends a backoff that is over."""
        if self._retry_at_ms is not None and self._retry_at_ms <= now_ms:
            self._retry_at_ms = None


def _data(proposal: IsrProposal, version: int) -> messages.AlterPartitionData:
    # A leader of Kafka's releases reports RECOVERED from the start; ours proposes nothing else before it recovers. No
    # ZooKeeper controller looks at the members' incarnations (KIP-903).
    return messages.AlterPartitionData(
        topic=proposal.partition.topic,
        topic_id=proposal.topic_id if version >= _VERSION_WITH_TOPIC_IDS else None,
        partition=proposal.partition.partition,
        leader_epoch=proposal.leader_epoch,
        partition_epoch=proposal.partition_epoch,
        new_isr=tuple(messages.IsrMember(member.broker_id) for member in proposal.members),
    )
