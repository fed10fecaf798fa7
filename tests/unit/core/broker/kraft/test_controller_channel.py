"""A broker's way to the active controller: who is asked, and whose answers count."""

import pytest

from laststand.emulator.core import effects, messages
from laststand.emulator.core.broker.kraft.controller_channel import ControllerChannel
from laststand.emulator.core.broker.replicas.config import BrokerConfig
from laststand.emulator.core.broker.replicas.in_flight_requests import InFlightRequests
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import (
    BrokerEpoch,
    BrokerId,
    CauseId,
    IncarnationId,
    LeaderEpoch,
    MetadataOffset,
    NodeId,
)

CONTROLLERS = (NodeId(100), NodeId(101), NodeId(102))


def channel() -> ControllerChannel:
    config = BrokerConfig(
        broker_id=BrokerId(NodeId(1)), controller_ids=CONTROLLERS, cluster_id="c", incarnation_id=IncarnationId("i")
    )
    return ControllerChannel(config, InFlightRequests())


def answer(error: ErrorCode = ErrorCode.NONE, *, epoch: int) -> messages.ControllerResponse:
    return messages.AlterPartitionResponse(error=error, controller_epoch=LeaderEpoch(epoch))


def test_controllers_are_asked_in_turn_and_only_the_one_asked_is_passed_over() -> None:
    controllers = channel()
    controllers.pass_over(NodeId(102))
    assert controllers.target == 100
    for expected in (101, 102, 100):
        controllers.pass_over(controllers.target)
        assert controllers.target == expected


@pytest.mark.parametrize(
    ("error", "epoch"),
    [(ErrorCode.NONE, 6), (ErrorCode.NONE, 7), (ErrorCode.INELIGIBLE_REPLICA, 6)],
)
def test_an_answer_of_this_epoch_or_a_later_one_counts(error: ErrorCode, epoch: int) -> None:
    controllers = channel()
    assert controllers.believes(NodeId(100), answer(epoch=6))
    assert controllers.believes(NodeId(100), answer(error, epoch=epoch))
    assert (controllers.target, controllers.controller_epoch) == (100, epoch)


@pytest.mark.parametrize(
    ("error", "epoch"),
    [(ErrorCode.NONE, 5), (ErrorCode.INELIGIBLE_REPLICA, 5), (ErrorCode.NOT_CONTROLLER, 6)],
)
def test_an_answer_of_a_deposed_controller_does_not_count(error: ErrorCode, epoch: int) -> None:
    controllers = channel()
    assert controllers.believes(NodeId(100), answer(epoch=6))
    assert not controllers.believes(NodeId(100), answer(error, epoch=epoch))
    assert (controllers.target, controllers.controller_epoch) == (101, 6)


def test_a_request_names_the_highest_epoch_seen() -> None:
    controllers, turn = channel(), Turn(now_ms=0, cause_id=CauseId("unit"))
    controllers.is_current(LeaderEpoch(6))
    controllers.is_current(LeaderEpoch(5))
    heartbeat = messages.BrokerHeartbeatRequest(
        broker_id=BrokerId(NodeId(1)),
        broker_epoch=BrokerEpoch(3),
        current_metadata_offset=MetadataOffset(9),
        want_fence=False,
        want_shut_down=False,
    )
    controllers.send(turn, heartbeat, timeout_ms=10)
    (sent,) = turn.effects()
    assert isinstance(sent, effects.SendRequest)
    assert isinstance(sent.request, messages.BrokerHeartbeatRequest)
    assert sent.request.controller_epoch == 6
