"""Requests under way: which of them were answered, and what that says of the peer."""

import pytest

from laststand.emulator.core import effects, messages
from laststand.emulator.core.broker.replicas.in_flight_requests import InFlightRequests
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.errors import InvariantError
from laststand.emulator.core.types import CauseId, CorrelationId, NodeId, RequestFailure
from tests.unit.core.broker.hosting import events_of

PEER = NodeId(7)


def turn() -> Turn:
    return Turn(now_ms=0, cause_id=CauseId("unit"))


def send(in_flight: InFlightRequests) -> CorrelationId:
    sending = turn()
    in_flight.send(sending, PEER, messages.MetadataRequest(topics=()), timeout_ms=100)
    (sent,) = sending.effects()
    assert isinstance(sent, effects.SendRequest)
    return sent.correlation_id


def test_a_peer_that_answers_again_is_reported_once() -> None:
    in_flight = InFlightRequests()
    told: list[list[str]] = []
    for is_answered in (True, False, False, True, True, False):
        correlation_id, hearing = send(in_flight), turn()
        if is_answered:
            in_flight.answered(hearing, correlation_id)
        else:
            in_flight.failed(hearing, correlation_id, RequestFailure.TIMED_OUT)
        told.append([type(event).__name__ for event in events_of(hearing)])
    assert told == [[], ["PeerUnreachable"], [], ["PeerReachable"], [], ["PeerUnreachable"]]


def test_a_request_ends_once() -> None:
    in_flight = InFlightRequests()
    correlation_id = send(in_flight)
    in_flight.answered(turn(), correlation_id)
    with pytest.raises(InvariantError, match="under way"):
        in_flight.answered(turn(), correlation_id)
    with pytest.raises(InvariantError, match="under way"):
        in_flight.failed(turn(), correlation_id, RequestFailure.TIMED_OUT)
