"""A broker's talk with its controller: when it asks, how long it waits, and when it gives up."""

import msgspec
import pytest

from laststand.emulator.core import effects, messages
from laststand.emulator.core.broker.kraft.controller_channel import ControllerChannel
from laststand.emulator.core.broker.kraft.lifecycle import (
    SHUTDOWN_INTERVAL_MS,
    STARTING_INTERVAL_MS,
    BrokerLifecycle,
    rack_of,
)
from laststand.emulator.core.broker.replicas.config import BrokerConfig
from laststand.emulator.core.broker.replicas.in_flight_requests import InFlightRequests
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.types import BrokerEpoch, BrokerId, BrokerState, CauseId, MetadataOffset, NodeId
from tests.unit.core.broker.hosting import Hosting

INTERVAL_MS, SESSION_MS = 2_000, 9_000
PROPERTIES = NodeProperties(broker_heartbeat_interval_ms=INTERVAL_MS, broker_session_timeout_ms=SESSION_MS)
FENCED = messages.BrokerHeartbeatResponse(error=ErrorCode.NONE, is_caught_up=True, is_fenced=True)
UNFENCED = messages.BrokerHeartbeatResponse(error=ErrorCode.NONE, is_caught_up=True, is_fenced=False)
BEHIND = messages.BrokerHeartbeatResponse(error=ErrorCode.NONE, is_caught_up=False, is_fenced=True)


class Talk:
    """A broker whose controller is played by the test."""

    def __init__(self, properties: NodeProperties = PROPERTIES) -> None:
        self.now_ms = 5_000
        config: BrokerConfig = msgspec.structs.replace(Hosting().config, properties=properties)
        self.life = BrokerLifecycle(config, ControllerChannel(config, InFlightRequests()))
        self.sent: list[effects.SendRequest] = []

    def turn(self) -> Turn:
        return Turn(now_ms=self.now_ms, cause_id=CauseId("unit"))

    def note(self, turn: Turn) -> int:
        """Keeps what a turn sent; returns how many requests that were."""
        sent = [effect for effect in turn.effects() if isinstance(effect, effects.SendRequest)]
        self.sent += sent
        return len(sent)

    def start(self) -> int:
        turn = self.turn()
        self.life.start(turn)
        return self.note(turn)

    def register(self, response: messages.BrokerRegistrationResponse | None = None) -> int:
        turn = self.turn()
        granted = messages.BrokerRegistrationResponse(error=ErrorCode.NONE, broker_epoch=BrokerEpoch(7))
        self.life.handle_registration(turn, response or granted)
        return self.note(turn)

    def hear(self, response: messages.BrokerHeartbeatResponse) -> int:
        turn = self.turn()
        self.life.handle_heartbeat(turn, response)
        return self.note(turn)

    def fail(self) -> int:
        turn = self.turn()
        self.life.handle_failure(turn)
        return self.note(turn)

    def shut_down(self) -> int:
        turn = self.turn()
        self.life.begin_shutdown(turn)
        return self.note(turn)

    def run(self) -> None:
        """Comes up until the controller calls it unfenced."""
        self.start()
        self.register()
        turn = self.turn()
        self.life.become_ready(turn)
        self.hear(FENCED)
        self.hear(UNFENCED)

    def wait_ms(self) -> int:
        """Lets time pass to the next deadline, which must send something; returns how long that was."""
        deadline_ms = self.life.next_deadline_ms()
        assert deadline_ms is not None
        waited_ms, self.now_ms = deadline_ms - self.now_ms, deadline_ms
        turn = self.turn()
        self.life.handle_timer(turn)
        assert self.note(turn) == 1
        return waited_ms

    def last_heartbeat(self) -> messages.BrokerHeartbeatRequest:
        request = self.sent[-1].request
        assert isinstance(request, messages.BrokerHeartbeatRequest)
        return request


def test_a_broker_that_starts_asks_often_until_it_has_caught_up() -> None:
    talk = Talk()
    assert talk.start() == 1
    assert talk.register() == 1
    waits: list[int] = []
    for response in (BEHIND, BEHIND, FENCED, FENCED):
        assert talk.hear(response) == 0
        waits.append(talk.wait_ms())
    assert waits == [STARTING_INTERVAL_MS, STARTING_INTERVAL_MS, INTERVAL_MS, INTERVAL_MS]


def test_an_interval_that_is_shorter_than_that_is_kept() -> None:
    talk = Talk(NodeProperties(broker_heartbeat_interval_ms=3))
    talk.start()
    talk.register()
    talk.hear(BEHIND)
    assert talk.wait_ms() == 3


@pytest.mark.parametrize(
    "refusal",
    [
        messages.BrokerRegistrationResponse(error=ErrorCode.DUPLICATE_BROKER_REGISTRATION),
        messages.BrokerRegistrationResponse(error=ErrorCode.INVALID_REGISTRATION, broker_epoch=BrokerEpoch(9)),
        messages.BrokerRegistrationResponse(error=ErrorCode.NONE),
    ],
)
def test_without_an_epoch_or_with_an_error_it_is_not_registered(refusal: messages.BrokerRegistrationResponse) -> None:
    talk = Talk()
    talk.start()
    assert talk.register(refusal) == 0
    assert talk.life.broker_epoch is None
    assert talk.wait_ms() == INTERVAL_MS
    assert isinstance(talk.sent[-1].request, messages.BrokerRegistrationRequest)


def test_each_failure_doubles_the_wait_up_to_the_interval_and_an_answer_begins_anew() -> None:
    talk = Talk()
    talk.start()
    waits: list[int] = []
    for _ in range(9):
        talk.fail()
        waits.append(talk.wait_ms())
    assert waits == [20, 40, 80, 160, 320, 640, 1280, 2000, 2000]
    talk.register()
    talk.fail()
    assert talk.wait_ms() == 20
    talk.fail()
    assert talk.wait_ms() == 40
    talk.hear(UNFENCED)
    talk.wait_ms()
    talk.fail()
    assert talk.wait_ms() == 20


@pytest.mark.parametrize(("session_ms", "timeout_ms"), [(9_000, 4_500), (3, 1), (1, 1)])
def test_two_tries_fit_into_a_session(session_ms: int, timeout_ms: int) -> None:
    talk = Talk(NodeProperties(broker_session_timeout_ms=session_ms))
    talk.start()
    assert talk.sent[-1].timeout_ms == timeout_ms


def test_a_heartbeat_names_the_last_record_that_was_applied() -> None:
    talk = Talk()
    talk.start()
    talk.register()
    assert talk.last_heartbeat().current_metadata_offset == -1, "nothing yet"
    talk.life.applied_end_offset = MetadataOffset(8)
    talk.hear(BEHIND)
    talk.wait_ms()
    assert talk.last_heartbeat().current_metadata_offset == 7


def test_news_goes_out_at_once_and_only_once_there_is_an_epoch() -> None:
    talk = Talk()
    turn = talk.turn()
    talk.life.heartbeat_now(turn)
    assert talk.note(turn) == 0
    talk.run()
    turn = talk.turn()
    talk.life.heartbeat_now(turn)
    talk.life.heartbeat_now(turn)
    assert talk.note(turn) == 1, "one is in flight, the other waits for its answer"
    assert talk.hear(UNFENCED) == 1
    assert talk.hear(UNFENCED) == 0


def test_a_broker_that_leaves_asks_again_soon_and_then_at_the_interval() -> None:
    talk = Talk()
    talk.run()
    assert talk.shut_down() == 1
    waits: list[int] = []
    for _ in range(4):
        assert talk.hear(FENCED) == 0
        waits.append(talk.wait_ms())
    assert waits == [SHUTDOWN_INTERVAL_MS, INTERVAL_MS, INTERVAL_MS, INTERVAL_MS]
    assert talk.last_heartbeat().want_shut_down


def test_a_broker_that_leaves_gives_up_a_session_after_the_last_answer() -> None:
    talk = Talk()
    talk.run()
    talk.shut_down()
    talk.now_ms += SESSION_MS - 1
    talk.hear(FENCED)
    talk.wait_ms()
    answered_ms = talk.now_ms - SHUTDOWN_INTERVAL_MS
    states: list[BrokerState] = []
    for now_ms in (answered_ms + SESSION_MS - 1, answered_ms + SESSION_MS):
        assert talk.life.next_deadline_ms() == answered_ms + SESSION_MS
        talk.now_ms = now_ms
        talk.life.handle_timer(talk.turn())
        states.append(talk.life.state)
    assert states == [BrokerState.PENDING_CONTROLLED_SHUTDOWN, BrokerState.SHUTTING_DOWN]
    assert talk.life.next_deadline_ms() is None
    turn = talk.turn()
    talk.life.heartbeat_now(turn)
    assert talk.note(turn) == 0


@pytest.mark.parametrize(
    ("broker_rack", "racks"),
    [
        ("", ["", "", ""]),
        ("rack-a", ["rack-a", "rack-a", "rack-a"]),
        ("rack-{node}", ["rack-0", "rack-1", "rack-2"]),
        ("a, b", ["a", "b", "a"]),
    ],
)
def test_brokers_take_the_racks_of_a_list_in_turn(broker_rack: str, racks: list[str]) -> None:
    assert [rack_of(BrokerId(NodeId(number)), broker_rack) for number in range(3)] == racks
