"""Every field of a control request is said from its version on; the protocol version decides which version is sent."""

from collections.abc import Callable
from typing import Final

import msgspec
import pytest

from laststand.emulator.core.types import BrokerEpoch, LeaderEpoch, LeaderRecoveryState, PartitionEpoch
from laststand.emulator.core.zookeeper import control_messages
from laststand.emulator.core.zookeeper.control_versions import FIELDS_SINCE, as_carried
from tests.unit.core.zookeeper.controller.controllers import ORDERS, TOPIC_ID
from tests.unit.core.zookeeper.controller.test_control_batch import ONE, TERM, THREE, TWO, Batch

ROLE: Final = control_messages.LeaderAndIsrPartition(
    name=ORDERS,
    controller_epoch=TERM,
    leader=ONE,
    leader_epoch=LeaderEpoch(5),
    isr=(ONE,),
    partition_epoch=PartitionEpoch(7),
    replicas=(ONE, TWO),
    adding_replicas=(TWO,),
    removing_replicas=(THREE,),
    is_new=True,
    leader_recovery_state=LeaderRecoveryState.RECOVERING,
    topic_id=TOPIC_ID,
)
METADATA: Final = control_messages.MetadataPartition(
    name=ORDERS,
    controller_epoch=TERM,
    leader=ONE,
    leader_epoch=LeaderEpoch(5),
    isr=(ONE,),
    partition_epoch=PartitionEpoch(7),
    replicas=(ONE, TWO),
    offline_replicas=(TWO,),
    topic_id=TOPIC_ID,
)
STOPPED: Final = control_messages.StopReplicaPartition(name=ORDERS, leader_epoch=LeaderEpoch(5), is_deleted=True)
EVERYTHING: Final[tuple[control_messages.ControlMessage, ...]] = (
    control_messages.LeaderAndIsrRequest(
        controller_id=ONE,
        controller_epoch=TERM,
        broker_epoch=BrokerEpoch(12),
        is_kraft_controller=True,
        partitions=(ROLE,),
        request_type=control_messages.LeaderAndIsrType.FULL,
        contains_all_replicas=True,
    ),
    control_messages.UpdateMetadataRequest(
        controller_id=ONE,
        controller_epoch=TERM,
        broker_epoch=BrokerEpoch(12),
        is_kraft_controller=True,
        live_brokers=(),
        partitions=(METADATA,),
    ),
    control_messages.StopReplicaRequest(
        controller_id=ONE,
        controller_epoch=TERM,
        broker_epoch=BrokerEpoch(12),
        is_kraft_controller=True,
        partitions=(STOPPED,),
    ),
)
"""One request of each kind that says all that it can, in the last version."""

FIELDS: Final = [(carrier, field, since) for carrier, fields in FIELDS_SINCE.items() for field, since in fields.items()]


def said(carrier: type[msgspec.Struct], field: str, version: int) -> object:
    """Returns what a field says once its request was sent in a version."""
    [request] = [
        request for request in EVERYTHING if carrier in (type(request), *(type(each) for each in request.partitions))
    ]
    carried = as_carried(msgspec.structs.replace(request, api_version=version))
    return getattr(carried if isinstance(carried, carrier) else carried.partitions[0], field)


@pytest.mark.parametrize(("carrier", "field", "since"), FIELDS)
def test_a_field_is_said_from_its_version_on(carrier: type[msgspec.Struct], field: str, since: int) -> None:
    defaults = {each.name: each.default for each in msgspec.structs.fields(carrier)}
    unsaid = (
        control_messages.StopReplicaEpoch.UNKNOWN
        if (carrier, field) == (control_messages.StopReplicaPartition, "leader_epoch")
        else defaults[field]
    )
    assert said(carrier, field, since - 1) == unsaid
    assert said(carrier, field, since) != unsaid
    assert said(carrier, field, 99) == said(carrier, field, since)


def test_the_last_version_says_everything() -> None:
    assert [as_carried(request) for request in EVERYTHING] == list(EVERYTHING)


def _sent(
    ibp: str,
) -> tuple[
    control_messages.LeaderAndIsrRequest, control_messages.UpdateMetadataRequest, control_messages.StopReplicaRequest
]:
    """Returns what a controller of era kip-550-zk sends a broker that has just started, at a protocol version."""
    batch = Batch(era="kip-550-zk", ibp=ibp)
    batch.batch.name_all_replicas_to((TWO,))
    batch.tell_roles(TWO)
    batch.batch.add_stop_replica((TWO,), ORDERS, is_deleted=True)
    roles, metadata, stopped = (request for broker_id, request in batch.close() if broker_id == TWO)
    assert isinstance(roles, control_messages.LeaderAndIsrRequest)
    assert isinstance(metadata, control_messages.UpdateMetadataRequest)
    assert isinstance(stopped, control_messages.StopReplicaRequest)
    return roles, metadata, stopped


@pytest.mark.parametrize(
    ("below", "at", "is_said"),
    [
        pytest.param("2.1", "2.2", lambda roles, _um, _stop: roles.broker_epoch == 12, id="roles-broker-epoch"),
        pytest.param("2.1", "2.2", lambda _roles, um, _stop: um.broker_epoch == 12, id="metadata-broker-epoch"),
        pytest.param("2.1", "2.2", lambda _roles, _um, stop: stop.broker_epoch == 12, id="stop-broker-epoch"),
        pytest.param("2.3", "2.4", lambda roles, _um, _stop: roles.partitions[0].adding_replicas != (), id="adding"),
        pytest.param(
            "2.3", "2.4", lambda roles, _um, _stop: roles.partitions[0].removing_replicas != (), id="removing"
        ),
        pytest.param(
            "2.5", "2.6", lambda _roles, _um, stop: stop.partitions[0].leader_epoch == 5, id="stop-leader-epoch"
        ),
        pytest.param(
            "2.8-IV0",
            "2.8-IV1",
            lambda roles, _um, _stop: roles.partitions[0].topic_id == TOPIC_ID,
            id="roles-topic-id",
        ),
        pytest.param(
            "2.8-IV0",
            "2.8-IV1",
            lambda _roles, um, _stop: um.partitions[0].topic_id == TOPIC_ID,
            id="metadata-topic-id",
        ),
        pytest.param(
            "2.8-IV0", "2.8-IV1", lambda roles, _um, _stop: roles.contains_all_replicas, id="contains-all-replicas"
        ),
        pytest.param(
            "3.1",
            "3.2",
            lambda roles, _um, _stop: roles.partitions[0].leader_recovery_state is LeaderRecoveryState.RECOVERING,
            id="recovery-state",
        ),
    ],
)
def test_the_protocol_version_decides_what_a_controller_says(
    below: str,
    at: str,
    is_said: Callable[
        [
            control_messages.LeaderAndIsrRequest,
            control_messages.UpdateMetadataRequest,
            control_messages.StopReplicaRequest,
        ],
        bool,
    ],
) -> None:
    assert not is_said(*_sent(below))
    assert is_said(*_sent(at))


@pytest.mark.parametrize(
    ("ibp", "versions"),
    [
        ("2.1", (1, 4, 0)),
        ("2.2", (2, 5, 1)),
        ("2.4-IV0", (3, 5, 1)),
        ("2.4-IV1", (4, 6, 2)),
        ("2.6", (4, 6, 3)),
        ("2.8-IV1", (5, 7, 3)),
        ("3.2", (6, 7, 3)),
        ("3.4", (7, 8, 4)),
        ("3.9", (7, 8, 4)),
    ],
)
def test_requests_carry_their_version(ibp: str, versions: tuple[int, int, int]) -> None:
    assert tuple(request.api_version for request in _sent(ibp)) == versions
