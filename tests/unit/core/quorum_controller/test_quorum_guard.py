"""Requests of the quorum need a permission on the cluster, by the entries that are committed."""

from typing import cast

import pytest

from laststand.emulator.core import admin_messages, messages
from laststand.emulator.core.acls import CLUSTER_NAME, AccessControlEntry, AclOperation, ResourceType
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.events import AuthorizationDenied
from laststand.emulator.core.message import Message
from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.quorum import messages as quorum
from laststand.emulator.core.quorum.batches import LogPosition
from laststand.emulator.core.quorum.voter_set import DirectoryId, ReplicaKey, VersionRange
from laststand.emulator.core.quorum_controller.quorum_guard import OPERATIONS
from laststand.emulator.core.requester import Requester
from laststand.emulator.core.types import LeaderEpoch, MetadataOffset, NodeId
from laststand.emulator.rpc.services import QUORUM_SERVICE, UNARY
from tests.unit.core.quorum_controller.controllers import CLUSTER, NODES, Controllers

EVE, ADMIN = Requester("User:eve"), Requester("User:admin")
PROPERTIES = NodeProperties(
    authorizer_class_name="org.apache.kafka.metadata.authorizer.StandardAuthorizer", super_users="User:admin"
)
STRANGER = ReplicaKey(NodeId(999), DirectoryId("elsewhere"))
END = LogPosition(LeaderEpoch(9), MetadataOffset(99))
EPOCH = LeaderEpoch(99)
REQUESTS: tuple[Message, ...] = (
    quorum.VoteRequest(
        cluster_id=CLUSTER,
        voter=None,
        candidate=STRANGER,
        leader_epoch=EPOCH,
        last_epoch=EPOCH,
        last_offset=END.end_offset,
        is_pre_vote=False,
    ),
    quorum.BeginQuorumEpochRequest(cluster_id=CLUSTER, voter=None, leader_id=NodeId(999), leader_epoch=EPOCH),
    quorum.EndQuorumEpochRequest(
        cluster_id=CLUSTER, leader_id=NodeId(999), leader_epoch=EPOCH, preferred_successors=()
    ),
    quorum.FetchMetadataRequest(
        cluster_id=CLUSTER,
        replica=STRANGER,
        leader_epoch=EPOCH,
        fetch_offset=MetadataOffset(0),
        last_fetched_epoch=LeaderEpoch(0),
        high_watermark=None,
        max_wait_ms=0,
    ),
    quorum.FetchSnapshotRequest(cluster_id=CLUSTER, replica=STRANGER, leader_epoch=EPOCH, snapshot=END, position=0),
    quorum.UpdateRaftVoterRequest(leader_epoch=EPOCH, voter=STRANGER, listener=None, versions=VersionRange(0, 1)),
    quorum.AddRaftVoterRequest(voter=STRANGER, listener=None),
    quorum.RemoveRaftVoterRequest(voter=STRANGER),
    quorum.DescribeQuorumRequest(),
)


@pytest.fixture(scope="module")
def controllers() -> Controllers:
    controllers = Controllers(PROPERTIES)
    controllers.elect()
    return controllers


def answer_to(controllers: Controllers, node_id: NodeId, request: Message, requester: Requester) -> Message:
    return cast(Message, controllers.answers[controllers.ask(node_id, cast(messages.Request, request), requester)])


def test_every_request_of_the_service_needs_a_permission_but_one() -> None:
    assert set(UNARY[QUORUM_SERVICE]) - {quorum.ApiVersionsRequest} == set(OPERATIONS)
    assert {type(request) for request in REQUESTS} == set(OPERATIONS)


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: type(request).__name__)
def test_a_stranger_is_refused_by_every_controller_and_changes_nothing(
    request_: Message, controllers: Controllers
) -> None:
    for node_id in NODES:
        before = controllers.core[node_id].quorum.replica.leader_epoch
        answer = answer_to(controllers, node_id, request_, EVE)
        assert type(answer) is quorum.RESPONSE_OF[type(request_)]
        assert getattr(answer, "error", None) is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert controllers.core[node_id].quorum.replica.leader_epoch == before
        denied = controllers.facts[node_id][-1]
        assert isinstance(denied, AuthorizationDenied)
        assert (denied.principal, denied.operation) == ("User:eve", OPERATIONS[type(request_)].name)


def test_an_entry_counts_where_it_is_known_to_be_committed() -> None:
    controllers = Controllers(PROPERTIES)
    active = controllers.elect()
    entry = AccessControlEntry(
        resource_type=ResourceType.CLUSTER,
        resource_name=CLUSTER_NAME,
        principal=EVE.principal,
        operation=AclOperation.DESCRIBE,
    )
    describe = quorum.DescribeQuorumRequest()
    refused = answer_to(controllers, active, describe, EVE)
    controllers.ask(active, admin_messages.CreateAclsRequest(acls=(entry,)), ADMIN)
    controllers.run(1_000)
    errors = {getattr(answer_to(controllers, node_id, describe, EVE), "error", None) for node_id in NODES}
    assert getattr(refused, "error", None) is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert errors == {ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER}
