"""Delayed produce requests (Kafka's ``DelayedProduce``): which wait, what ends their wait, and what is told of it."""

import msgspec
import pytest

from laststand.emulator.core import effects, events, messages
from laststand.emulator.core.batch import InvalidBatch
from laststand.emulator.core.broker.replicas import delayed_produce
from laststand.emulator.core.broker.replicas.delayed_produce import ProduceHandler
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.switches import Switches
from laststand.emulator.core.types import Acks, CauseId, RequestId, TopicId, TopicPartition
from tests.unit.core.broker.hosting import FIRST, NAME, OWN, SECOND, TOPIC_ID, Hosting, batch, events_of

MISSING = TopicPartition("payments", 0)
INVALID = InvalidBatch(error=ErrorCode.CORRUPT_MESSAGE, reason="torn")


def asked(name: TopicPartition = NAME) -> messages.ProducePartition:
    return messages.ProducePartition(topic=name.topic, partition=name.partition, batch=batch(0, 0))


class Producing:
    """A leader whose followers fetch nothing."""

    def __init__(self) -> None:
        self.hosting = Hosting()
        self.hosting.lead(OWN, FIRST, SECOND)
        self.handler = ProduceHandler(self.hosting.hosted, Switches())
        self.turn = self.hosting.turn()
        self.requests = 0

    def produce(
        self, *partitions: messages.ProducePartition, acks: Acks = Acks.ALL
    ) -> dict[RequestId, list[ErrorCode]]:
        """Returns the answers that the request leads to at once, by request."""
        self.requests += 1
        self.turn = self.hosting.turn()
        request = messages.ProduceRequest(acks=acks, timeout_ms=1000, partitions=partitions)
        self.handler.handle_request(self.turn, RequestId(self.requests), request)
        return self.answers()

    def wait(self, ms: int) -> dict[RequestId, list[ErrorCode]]:
        self.hosting.now_ms += ms
        self.turn = self.hosting.turn()
        self.handler.handle_timer(self.turn)
        return self.answers()

    def answers(self) -> dict[RequestId, list[ErrorCode]]:
        answers: dict[RequestId, list[ErrorCode]] = {}
        for effect in self.turn.effects():
            if isinstance(effect, effects.SendResponse):
                assert isinstance(effect.response, messages.ProduceResponse)
                answers[effect.request_id] = [answer.error for answer in effect.response.partitions]
        return answers

    def told(self) -> list[events.ProduceAnswered]:
        return [event for event in events_of(self.turn) if isinstance(event, events.ProduceAnswered)]


def test_past_the_limit_the_oldest_request_times_out_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delayed_produce, "WAITING_MAX", 2)
    producing = Producing()
    assert [producing.produce(asked()) for _ in range(4)] == [
        {},
        {},
        {1: [ErrorCode.REQUEST_TIMED_OUT]},
        {2: [ErrorCode.REQUEST_TIMED_OUT]},
    ]


def test_what_timed_out_waits_no_longer() -> None:
    producing = Producing()
    producing.produce(asked())
    producing.wait(999)
    producing.produce(asked())
    assert producing.handler.waiting_on(NAME) == 2
    assert producing.wait(1) == {1: [ErrorCode.REQUEST_TIMED_OUT]}
    assert producing.handler.waiting_on(NAME) == 1
    assert producing.wait(999) == {2: [ErrorCode.REQUEST_TIMED_OUT]}
    assert (producing.handler.waiting_on(NAME), len(producing.handler)) == (0, 0)


def test_an_answer_reports_which_topic_the_log_is_and_how_many_records_came() -> None:
    producing = Producing()
    producing.hosting.image.topics[NAME.topic] = TopicId("id-of-the-next-orders")
    producing.hosting.image.topics[MISSING.topic] = TopicId("id-of-payments")
    broken = messages.ProducePartition(topic=MISSING.topic, partition=MISSING.partition, batch=INVALID)
    producing.produce(asked(), broken, acks=Acks.LEADER)
    assert [(event.topic_id, event.record_count) for event in producing.told()] == [
        (TOPIC_ID, 1),
        ("id-of-payments", 0),
    ]


def test_what_follows_of_a_batch_has_its_own_cause() -> None:
    producing = Producing()
    producing.produce(msgspec.structs.replace(asked(), cause_id=CauseId("send-1")), asked(MISSING), acks=Acks.LEADER)
    appended = [event.cause_id for event in events_of(producing.turn) if isinstance(event, events.BatchAppended)]
    assert appended == ["send-1"]
    assert [event.cause_id for event in producing.told()] == ["send-1", producing.turn.cause_id]
