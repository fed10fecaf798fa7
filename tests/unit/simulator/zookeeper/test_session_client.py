"""A process's end of its session: what becomes of steps when connections and sessions end."""

from laststand.emulator.core.types import CorrelationId
from laststand.emulator.core.zookeeper import exchange
from laststand.emulator.core.zookeeper.identifiers import SessionId
from laststand.emulator.simulator.network import session_messages
from laststand.emulator.simulator.zookeeper.session_client import SessionClient

_STEPS = exchange.ZooKeeperRequest(correlation_id=CorrelationId(1), steps=())


def sent(client: SessionClient) -> list[type]:
    """Returns the kinds of what the client has to say, in order."""
    return [type(request) for request, _ in client.outgoing]


def heard(client: SessionClient) -> list[type]:
    """Returns the kinds of what the process is told, once."""
    told = [type(each) for each in client.heard]
    client.heard.clear()
    return told


def connected(number: int = 1) -> SessionClient:
    client = SessionClient(timeout_ms=300)
    open_session(client, number)
    return client


def open_session(client: SessionClient, number: int) -> None:
    client.open()
    asked = client.outgoing.pop()
    client.answered(asked, session_messages.SessionResponse(session_id=SessionId(number)))
    assert exchange.SessionEstablished in heard(client)


def test_it_polls_as_soon_as_it_is_connected() -> None:
    assert sent(connected()) == [session_messages.PollRequest]


def test_steps_under_way_are_lost_with_their_connection_and_later_ones_wait() -> None:
    client = connected()
    poll = client.outgoing.pop()
    client.ask(_STEPS)
    client.outgoing.clear()
    client.failed(poll, now_ms=0)
    assert heard(client) == [exchange.ZooKeeperConnectionLost]
    client.ask(_STEPS)
    assert sent(client) == [session_messages.ConnectRequest]
    client.answered(client.outgoing.pop(), session_messages.SessionResponse(session_id=SessionId(1)))
    assert heard(client) == [exchange.ZooKeeperReconnected]
    assert sent(client) == [session_messages.ExecuteRequest, session_messages.PollRequest]


def test_it_tries_again_to_connect() -> None:
    client = SessionClient(timeout_ms=300)
    client.open()
    client.failed(client.outgoing.pop(), now_ms=0)
    due_ms = client.next_deadline_ms()
    assert due_ms is not None
    client.time_came(now_ms=due_ms)
    assert sent(client) == [session_messages.OpenSessionRequest]


def test_what_is_asked_for_after_the_end_of_a_session_belongs_to_the_next_one() -> None:
    client = connected()
    client.answered(client.outgoing.pop(), session_messages.SessionGone())
    assert heard(client) == [exchange.SessionExpired]
    client.ask(_STEPS)  # before the process lets go of the old session
    open_session(client, 2)
    assert sent(client) == [session_messages.ExecuteRequest, session_messages.PollRequest]


def test_answers_of_an_older_connection_are_nothing() -> None:
    client = connected()
    poll = client.outgoing.pop()
    client.failed(poll, now_ms=0)
    heard(client)
    client.answered(poll, session_messages.SessionGone())
    assert heard(client) == []
