"""Producer ids come from blocks that the controller allocates (KIP-730, Kafka's ``RPCProducerIdManager``)."""

import pytest

from laststand.emulator.core import effects, messages
from laststand.emulator.core.broker.kraft.controller_channel import ControllerChannel
from laststand.emulator.core.broker.kraft.producer_ids import ProducerIds
from laststand.emulator.core.broker.replicas.in_flight_requests import InFlightRequests
from laststand.emulator.core.broker.replicas.producer_id_blocks import WAITING_MAX
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import BrokerEpoch, CauseId, ProducerEpoch, ProducerId, RequestId
from tests.unit.core.broker.hosting import OWN, Hosting

EPOCH = BrokerEpoch(7)
FRESH = messages.InitProducerIdRequest()
REFUSAL = (ErrorCode.BROKER_NOT_AVAILABLE, -1, -1)


class Producers:
    """A broker's producer ids, and what it sent because of each input."""

    def __init__(self) -> None:
        self.config = Hosting().config
        self.ids = ProducerIds(self.config, ControllerChannel(self.config, InFlightRequests()))
        self.asked: list[effects.SendRequest] = []
        self.answers: dict[int, tuple[ErrorCode, int | None, int | None]] = {}

    def take(self, turn: Turn) -> None:
        for effect in turn.effects():
            if isinstance(effect, effects.SendRequest):
                self.asked.append(effect)
            if isinstance(effect, effects.SendResponse):
                response = effect.response
                assert isinstance(response, messages.InitProducerIdResponse)
                assert effect.cause_id == f"producer-{effect.request_id}"
                self.answers[effect.request_id] = (response.error, response.producer_id, response.producer_epoch)

    def init(
        self, number: int, request: messages.InitProducerIdRequest = FRESH, *, broker_epoch: BrokerEpoch | None = EPOCH
    ) -> None:
        turn = Turn(now_ms=0, cause_id=CauseId(f"producer-{number}"))
        self.ids.handle_request(turn, RequestId(number), request, broker_epoch)
        self.take(turn)

    def allocate(self, start: int, length: int, error: ErrorCode = ErrorCode.NONE) -> None:
        turn = Turn(now_ms=0, cause_id=CauseId("block"))
        block = messages.AllocateProducerIdsResponse(
            error=error, producer_id_start=ProducerId(start), producer_id_len=length
        )
        self.ids.handle_block(turn, block, EPOCH)
        self.take(turn)

    def fail(self) -> None:
        turn = Turn(now_ms=0, cause_id=CauseId("block"))
        self.ids.handle_failure(turn)
        self.take(turn)


def test_producers_wait_for_one_block_and_get_its_ids_in_order() -> None:
    producers = Producers()
    for number in (1, 2, 3):
        producers.init(number)
    (asked,) = producers.asked
    assert asked.request == messages.AllocateProducerIdsRequest(broker_id=OWN, broker_epoch=EPOCH)
    assert asked.destination == producers.config.controller_ids[0]
    assert asked.timeout_ms == producers.config.properties.broker_session_timeout_ms
    assert producers.answers == {}
    producers.allocate(1000, 2)
    assert producers.answers == {1: (ErrorCode.NONE, 1000, 0), 2: (ErrorCode.NONE, 1001, 0)}
    assert len(producers.asked) == 2, "one of them still waits"
    producers.allocate(5000, 10)
    producers.init(4)
    assert producers.answers[3] == (ErrorCode.NONE, 5000, 0)
    assert producers.answers[4] == (ErrorCode.NONE, 5001, 0)
    assert len(producers.asked) == 2


@pytest.mark.parametrize(("epoch", "answer"), [(0, (ErrorCode.NONE, 77, 1)), (32_765, (ErrorCode.NONE, 77, 32_766))])
def test_a_producer_that_names_its_id_gets_its_next_epoch(epoch: int, answer: tuple[ErrorCode, int, int]) -> None:
    # KIP-360; nothing is asked of the controller.
    producers = Producers()
    producers.init(1, messages.InitProducerIdRequest(producer_id=ProducerId(77), producer_epoch=ProducerEpoch(epoch)))
    assert producers.answers == {1: answer}
    assert producers.asked == []


def test_a_producer_without_further_epochs_gets_another_id() -> None:
    producers = Producers()
    producers.init(1, messages.InitProducerIdRequest(producer_id=ProducerId(77), producer_epoch=ProducerEpoch(32_766)))
    producers.allocate(1000, 1)
    assert producers.answers == {1: (ErrorCode.NONE, 1000, 0)}


def test_a_broker_without_registration_cannot_ask() -> None:
    producers = Producers()
    producers.init(1, broker_epoch=None)
    assert producers.answers == {1: REFUSAL}
    assert producers.asked == []


@pytest.mark.parametrize(("length", "error"), [(10, ErrorCode.STALE_BROKER_EPOCH), (0, ErrorCode.NONE)])
def test_a_waiting_request_is_refused_as_retriable_when_no_block_comes(length: int, error: ErrorCode) -> None:
    producers = Producers()
    producers.init(1)
    producers.init(2)
    producers.allocate(1000, length, error)
    assert producers.answers == {1: REFUSAL, 2: REFUSAL}
    producers.init(3)
    assert len(producers.asked) == 2, "the next one asks anew"
    producers.fail()
    assert producers.answers[3] == REFUSAL
    producers.init(4)
    assert len(producers.asked) == 3


def test_a_block_of_one_id_is_a_block() -> None:
    producers = Producers()
    producers.init(1)
    producers.allocate(1000, 1)
    assert producers.answers == {1: (ErrorCode.NONE, 1000, 0)}


def test_only_so_many_wait() -> None:
    producers = Producers()
    for number in range(WAITING_MAX):
        producers.init(number)
    assert producers.answers == {}
    producers.init(WAITING_MAX)
    assert producers.answers == {WAITING_MAX: REFUSAL}
