"""Control requests that are too old to be looked at (KIP-380; Kafka's ``ReplicaManager``)."""

import msgspec
import pytest

from laststand.emulator.core.broker.zookeeper.control_fence import ControlFence
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import BrokerEpoch, BrokerId, NodeId
from laststand.emulator.core.zookeeper import control_messages
from laststand.emulator.core.zookeeper.identifiers import ControllerEpoch
from laststand.emulator.core.zookeeper.rules import ZOOKEEPER_ERAS

RULES = ZOOKEEPER_ERAS["kafka-3.9-zk"].rules


def request(*, controller_epoch: int, broker_epoch: int | None = None) -> control_messages.StopReplicaRequest:
    return control_messages.StopReplicaRequest(
        controller_id=BrokerId(NodeId(1)),
        controller_epoch=ControllerEpoch(controller_epoch),
        broker_epoch=None if broker_epoch is None else BrokerEpoch(broker_epoch),
        partitions=(),
    )


def test_the_first_controller_is_heard() -> None:
    assert ControlFence(RULES).check(request(controller_epoch=0)) is ErrorCode.NONE


def test_a_controller_is_heard_until_a_later_one_has_been() -> None:
    fence = ControlFence(RULES)
    for controller_epoch in (3, 3, 5):
        assert fence.check(request(controller_epoch=controller_epoch)) is ErrorCode.NONE
    assert fence.check(request(controller_epoch=4)) is ErrorCode.STALE_CONTROLLER_EPOCH
    assert fence.controller_epoch == 5


def test_a_query_adopts_nothing() -> None:
    fence = ControlFence(RULES)
    assert fence.error_of(request(controller_epoch=7)) is ErrorCode.NONE
    assert fence.controller_epoch == 0


@pytest.mark.parametrize(
    ("own", "named", "error"),
    [
        (8, 7, ErrorCode.STALE_BROKER_EPOCH),
        (8, 8, ErrorCode.NONE),
        (8, 9, ErrorCode.NONE),  # the controller heard of the registration before the broker did
        (8, None, ErrorCode.NONE),
        (None, 7, ErrorCode.NONE),
    ],
)
def test_what_was_meant_for_a_former_incarnation_is_refused(
    own: int | None, named: int | None, error: ErrorCode
) -> None:
    fence = ControlFence(RULES)
    fence.broker_epoch = None if own is None else BrokerEpoch(own)
    assert fence.check(request(controller_epoch=3, broker_epoch=named)) is error
    assert fence.controller_epoch == (3 if error is ErrorCode.NONE else 0)


def test_before_kip_380_incarnations_are_not_compared() -> None:
    fence = ControlFence(msgspec.structs.replace(RULES, control_broker_epoch_check=False))
    fence.broker_epoch = BrokerEpoch(8)
    assert fence.check(request(controller_epoch=3, broker_epoch=7)) is ErrorCode.NONE
