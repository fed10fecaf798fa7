"""The queue of ISR changes to a ZooKeeper controller (Kafka's ``AlterPartitionManager``)."""

import pytest

from laststand.emulator.core import messages
from laststand.emulator.core.broker.replicas.isr import IsrProposal, PendingExpand
from laststand.emulator.core.broker.zookeeper.alter_partition import RETRY_BACKOFF_MS, ZooKeeperAlterPartition
from laststand.emulator.core.broker.zookeeper.metadata_cache import id_by_name
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import BrokerEpoch, BrokerId, LeaderEpoch, PartitionEpoch, TopicId, TopicPartition
from laststand.emulator.core.zookeeper.rules import ZOOKEEPER_ERAS
from tests.unit.core.broker.hosting import FIRST, OWN, SECOND, TOPIC_ID, Hosting

EPOCH = BrokerEpoch(7)
CONTROLLER = SECOND


def proposal(number: int, topic_id: TopicId = TOPIC_ID) -> IsrProposal:
    return IsrProposal(
        partition=TopicPartition("orders", number),
        topic_id=topic_id,
        leader_epoch=LeaderEpoch(4),
        partition_epoch=PartitionEpoch(5),
        members=(messages.IsrMember(OWN, EPOCH), messages.IsrMember(FIRST, BrokerEpoch(8))),
        state=PendingExpand((OWN,), FIRST),
    )


class Queue:
    """The queue of a broker, and the controller that it asks."""

    def __init__(self, era_name: str = "kafka-3.9-zk") -> None:
        era = ZOOKEEPER_ERAS[era_name]
        self.changes = ZooKeeperAlterPartition(Hosting().config, era.rules, era.rules.protocol(era.ibp))
        self.now_ms = 1_000
        self.changes.controller_to_ask(CONTROLLER)

    def submit(self, *numbers: int) -> list[IsrProposal]:
        proposals = [proposal(number) for number in numbers]
        assert [self.changes.submit(each) for each in proposals] == [ErrorCode.NONE] * len(proposals)
        return proposals

    def take(self) -> messages.AlterPartitionRequest | None:
        return self.changes.pop_due(broker_epoch=EPOCH, now_ms=self.now_ms)

    def sent(self) -> messages.AlterPartitionRequest:
        request = self.take()
        assert request is not None
        return request

    def answer(
        self, request: messages.AlterPartitionRequest, *errors: ErrorCode, error: ErrorCode = ErrorCode.NONE
    ) -> list[tuple[IsrProposal, messages.AlterPartitionResult]]:
        results = tuple(
            messages.AlterPartitionResult(
                topic=asked.topic, topic_id=asked.topic_id, partition=asked.partition, error=each
            )
            for asked, each in zip(request.partitions, errors, strict=True)
        )
        response = messages.AlterPartitionResponse(error=error, partitions=results)
        return self.changes.answered(request, response, now_ms=self.now_ms)

    def asks(self, known: BrokerId) -> BrokerId | None:
        return self.changes.controller_to_ask(known)


def is_sent_again_after_the_backoff(queue: Queue) -> bool:
    asked_at_ms = queue.now_ms
    assert queue.changes.next_deadline_ms() == asked_at_ms + RETRY_BACKOFF_MS
    queue.now_ms = asked_at_ms + RETRY_BACKOFF_MS - 1
    is_early = queue.take() is not None
    queue.now_ms += 1
    return not is_early and queue.take() is not None


def test_everything_that_is_queued_goes_out_together_and_one_request_at_a_time() -> None:
    queue = Queue()
    queue.submit(0, 1)
    request = queue.sent()
    assert request.partitions == tuple(
        messages.AlterPartitionData(
            topic="orders",
            topic_id=TOPIC_ID,
            partition=number,
            leader_epoch=LeaderEpoch(4),
            partition_epoch=PartitionEpoch(5),
            new_isr=(messages.IsrMember(OWN), messages.IsrMember(FIRST)),
        )
        for number in (0, 1)
    )
    assert (request.broker_id, request.broker_epoch, request.api_version) == (OWN, EPOCH, 3)
    queue.submit(2)
    assert queue.take() is None
    queue.answer(request, ErrorCode.NONE, ErrorCode.NONE)
    assert [asked.partition for asked in queue.sent().partitions] == [2]


def test_a_partition_has_one_change_at_a_time() -> None:
    queue = Queue()
    queue.submit(0)
    assert queue.changes.submit(proposal(0)) is ErrorCode.OPERATION_NOT_ATTEMPTED


@pytest.mark.parametrize(
    ("era", "topic_id", "version"), [("kafka-3.1-zk", TOPIC_ID, 0), ("kafka-3.9-zk", id_by_name("orders"), 1)]
)
def test_topics_go_by_name_where_controller_or_topic_are_too_old_for_ids(
    era: str, topic_id: TopicId, version: int
) -> None:
    queue = Queue(era)
    queue.changes.submit(proposal(0, topic_id))
    request = queue.sent()
    assert request.api_version == version
    assert [asked.topic_id for asked in request.partitions] == [None]


def test_an_answered_change_is_off_the_queue() -> None:
    queue = Queue()
    first, second = queue.submit(0, 1)
    answered = queue.answer(queue.sent(), ErrorCode.INVALID_UPDATE_VERSION, ErrorCode.NONE)
    assert [(change, result.error) for change, result in answered] == [
        (first, ErrorCode.INVALID_UPDATE_VERSION),
        (second, ErrorCode.NONE),
    ]
    assert queue.take() is None
    assert queue.asks(FIRST) == CONTROLLER


def test_an_answer_about_what_was_not_asked_is_passed_over() -> None:
    queue = Queue()
    (change,) = queue.submit(1)
    request = queue.sent()
    (asked,) = request.partitions
    other = messages.AlterPartitionRequest(
        broker_id=OWN,
        broker_epoch=EPOCH,
        partitions=(
            messages.AlterPartitionData(
                topic="refunds",
                topic_id=None,
                partition=0,
                leader_epoch=LeaderEpoch(0),
                partition_epoch=PartitionEpoch(0),
                new_isr=(),
            ),
            asked,
        ),
    )
    assert [each for each, _ in queue.answer(other, ErrorCode.NONE, ErrorCode.NONE)] == [change]


@pytest.mark.parametrize(
    ("error", "asked_next"), [(ErrorCode.NOT_CONTROLLER, FIRST), (ErrorCode.STALE_BROKER_EPOCH, CONTROLLER)]
)
def test_an_error_of_the_whole_request_keeps_everything_for_later(error: ErrorCode, asked_next: BrokerId) -> None:
    queue = Queue()
    queue.submit(0)
    request = queue.sent()
    response = messages.AlterPartitionResponse(error=error, partitions=())
    assert queue.changes.answered(request, response, now_ms=queue.now_ms) == []
    assert queue.asks(FIRST) == asked_next
    assert is_sent_again_after_the_backoff(queue)


def test_a_partition_whose_controller_is_another_one_is_asked_for_again_and_the_rest_is_settled() -> None:
    queue = Queue()
    _, second = queue.submit(0, 1)
    answered = queue.answer(queue.sent(), ErrorCode.NOT_CONTROLLER, ErrorCode.NONE)
    assert [change for change, _ in answered] == [second]
    assert queue.asks(FIRST) == FIRST
    assert is_sent_again_after_the_backoff(queue)


def test_without_an_answer_everything_is_sent_again() -> None:
    queue = Queue()
    queue.submit(0)
    queue.sent()
    queue.changes.failed(now_ms=queue.now_ms)
    assert queue.asks(FIRST) == FIRST
    assert is_sent_again_after_the_backoff(queue)


def test_a_backoff_that_is_over_needs_no_deadline() -> None:
    queue = Queue()
    queue.changes.failed(now_ms=queue.now_ms)
    queue.changes.handle_timer(now_ms=queue.now_ms + RETRY_BACKOFF_MS - 1)
    assert queue.changes.next_deadline_ms() == queue.now_ms + RETRY_BACKOFF_MS
    queue.changes.handle_timer(now_ms=queue.now_ms + RETRY_BACKOFF_MS)
    assert queue.changes.next_deadline_ms() is None
