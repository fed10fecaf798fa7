"""Requests between nodes, each with and without its permission."""

import typing
from collections.abc import Iterator

import msgspec
import pytest

from laststand.emulator.core import admin_messages as admin
from laststand.emulator.core import group_messages as groups
from laststand.emulator.core import messages
from laststand.emulator.core import transaction_messages as transactions
from laststand.emulator.core.acl_store import AclStore
from laststand.emulator.core.acls import (
    CLUSTER_NAME,
    AccessControlEntry,
    AclFilter,
    AclOperation,
    ResourceType,
)
from laststand.emulator.core.authorizer.authorizer import Authorizer
from laststand.emulator.core.authorizer.request_guard import Refused, RequestGuard
from laststand.emulator.core.authorizer.requirements import REQUIREMENTS, Requirement, Subject
from laststand.emulator.core.batch import InvalidBatch, TransactionResult
from laststand.emulator.core.effects import SendResponse
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.inputs import RequestReceived
from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.requester import Requester
from laststand.emulator.core.types import (
    BrokerEpoch,
    BrokerId,
    CauseId,
    ConfigResource,
    IncarnationId,
    LeaderEpoch,
    MetadataOffset,
    NodeId,
    Offset,
    ProducerEpoch,
    ProducerId,
    RequestId,
    TopicId,
    TopicPartition,
)
from laststand.emulator.rpc.services import QUORUM_SERVICE, STREAMED, UNARY, ZOOKEEPER_BROKER_SERVICE

BROKER = BrokerId(NodeId(1))
EPOCH = BrokerEpoch(5)
ALICE = Requester("User:alice")
CAUSE = CauseId("test")
BATCH = InvalidBatch(error=ErrorCode.CORRUPT_MESSAGE, reason="never read")
GUARDED_ELSEWHERE = {ZOOKEEPER_BROKER_SERVICE, QUORUM_SERVICE}
"""Services of which one has no authorizer, and the other is tested with the quorum."""

UNGUARDED = {admin.DescribeFeaturesRequest, admin.DescribeClusterRequest}
DENIED = {
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
}


def produce(*topics: str, acks: int = -1, transactional_id: str | None = None) -> messages.ProduceRequest:
    partitions = tuple(messages.ProducePartition(topic=each, partition=0, batch=BATCH) for each in topics)
    return messages.ProduceRequest(acks=acks, timeout_ms=1, partitions=partitions, transactional_id=transactional_id)


def fetch(*topics: str, replica_id: BrokerId | None = None) -> messages.FetchRequest:
    partitions = tuple(
        messages.FetchPartition(topic=each, topic_id=None, partition=0, fetch_offset=Offset(0)) for each in topics
    )
    return messages.FetchRequest(partitions=partitions, replica_id=replica_id)


def commit(*topics: str, transactional_id: str = "") -> groups.OffsetCommitRequest:
    return groups.OffsetCommitRequest(
        api_version=9,
        group_id="shop",
        member_id="",
        instance_id=None,
        generation_id=-1,
        offsets=tuple(groups.CommittedOffset(partition=TopicPartition(each, 0), offset=1) for each in topics),
        transactional_id=transactional_id,
    )


REQUESTS: tuple[messages.Request, ...] = (
    messages.BrokerRegistrationRequest(
        broker_id=BROKER, cluster_id="c", incarnation_id=IncarnationId("i"), log_dirs=("d",)
    ),
    messages.BrokerHeartbeatRequest(
        broker_id=BROKER,
        broker_epoch=EPOCH,
        current_metadata_offset=MetadataOffset(1),
        want_fence=False,
        want_shut_down=False,
    ),
    messages.AlterPartitionRequest(broker_id=BROKER, broker_epoch=EPOCH, partitions=()),
    messages.AllocateProducerIdsRequest(broker_id=BROKER, broker_epoch=EPOCH),
    messages.GetReplicaLogInfoRequest(partitions=((TopicId("t"), 0),)),
    transactions.AddPartitionsToTxnRequest(transactions=()),
    transactions.InitTransactionRequest(transactional_id="shop", timeout_ms=1000),
    transactions.EndTxnRequest(
        transactional_id="shop",
        producer_id=ProducerId(7),
        producer_epoch=ProducerEpoch(0),
        result=TransactionResult.COMMIT,
    ),
    transactions.WriteTxnMarkersRequest(
        markers=(
            transactions.TransactionMarkers(
                producer_id=ProducerId(1),
                producer_epoch=ProducerEpoch(0),
                result=TransactionResult.COMMIT,
                coordinator_epoch=0,
                raises_epoch=False,
                partitions=(TopicPartition("orders", 0),),
            ),
        )
    ),
    transactions.TransactionsOfProducersRequest(
        partition=0, leader_epoch=LeaderEpoch(1), producer_ids=(ProducerId(1),)
    ),
    commit("orders"),
    groups.OffsetFetchRequest(group_id="shop", partitions=(TopicPartition("orders", 0),)),
    groups.JoinGroupRequest(
        api_version=9,
        group_id="shop",
        member_id="",
        drawn_member_id="m",
        instance_id=None,
        client_id="c",
        client_host="/h",
        session_timeout_ms=1,
        rebalance_timeout_ms=1,
        protocol_type="consumer",
        protocols=(),
    ),
    groups.SyncGroupRequest(
        group_id="shop",
        member_id="m",
        instance_id=None,
        generation_id=1,
        protocol_type=None,
        protocol_name=None,
        assignments=(),
    ),
    groups.HeartbeatRequest(group_id="shop", member_id="m", instance_id=None, generation_id=1),
    groups.LeaveGroupRequest(group_id="shop", members=()),
    produce("orders"),
    fetch("orders"),
    messages.ListOffsetsRequest(partitions=(messages.ListOffsetsPosition(topic="orders", partition=0, timestamp=-1),)),
    messages.OffsetForLeaderEpochRequest(
        partitions=(messages.EpochPosition(topic="orders", partition=0, leader_epoch=typing.cast(typing.Any, 0)),)
    ),
    messages.DeleteRecordsRequest(partitions=(messages.DeleteRecordsTarget(topic="orders", partition=0, offset=None),)),
    messages.MetadataRequest(topics=("orders",)),
    messages.DescribeTopicPartitionsRequest(topics=("orders",)),
    messages.InitProducerIdRequest(),
    admin.CreateTopicsRequest(topics=(admin.CreatableTopic(name="orders", topic_id=TopicId("t")),)),
    admin.DeleteTopicsRequest(topics=("orders",)),
    admin.CreatePartitionsRequest(topics=(admin.CreatablePartitions(name="orders", count=2),)),
    admin.ElectLeadersRequest(election_type=0, partitions=None),
    admin.AlterPartitionReassignmentsRequest(partitions=()),
    admin.ListPartitionReassignmentsRequest(),
    admin.IncrementalAlterConfigsRequest(
        resources=(admin.AlterConfigsResource(resource=ConfigResource.TOPIC, resource_name="orders", configs=()),)
    ),
    admin.DescribeConfigsRequest(
        resources=(admin.DescribeConfigsResource(resource=ConfigResource.TOPIC, resource_name="orders"),)
    ),
    admin.UpdateFeaturesRequest(feature_updates=()),
    admin.UnregisterBrokerRequest(broker_id=BROKER),
    admin.CreateAclsRequest(
        acls=(
            AccessControlEntry(
                resource_type=ResourceType.TOPIC,
                resource_name="orders",
                principal="User:alice",
                operation=AclOperation.READ,
            ),
        )
    ),
    admin.DescribeAclsRequest(filter=AclFilter()),
    admin.DeleteAclsRequest(filters=(AclFilter(),)),
    admin.AlterClientQuotasRequest(entries=(admin.QuotaAlteration(entity=(), ops=()),)),
)
HIDING = (messages.MetadataRequest, messages.DescribeTopicPartitionsRequest)
"""Requests whose answers leave out what is denied."""


def allowed(
    operation: AclOperation, name: str, resource_type: ResourceType, principal: str = ALICE.principal
) -> AccessControlEntry:
    return AccessControlEntry(resource_type=resource_type, resource_name=name, principal=principal, operation=operation)


def guard(*entries: AccessControlEntry) -> RequestGuard:
    store = AclStore()
    for acl_id, each in enumerate(entries):
        store.add(acl_id, each)
    return RequestGuard(Authorizer(NodeProperties(), store))


def received(request: messages.Request, requester: Requester | None = ALICE) -> RequestReceived:
    return RequestReceived(cause_id=CAUSE, request_id=RequestId(1), request=request, requester=requester)


def entries_for(requirement: Requirement) -> tuple[AccessControlEntry, ...]:
    if requirement.subject is Subject.GROUP:
        of_group = allowed(requirement.operation, "shop", ResourceType.GROUP)
        return of_group, allowed(requirement.operation, "orders", ResourceType.TOPIC)
    if requirement.subject is Subject.MEMBERSHIP:
        return (allowed(requirement.operation, "shop", ResourceType.GROUP),)
    return (entry_for(requirement),)


def entry_for(requirement: Requirement) -> AccessControlEntry:
    if requirement.subject is Subject.TRANSACTIONAL_ID:
        return allowed(requirement.operation, "shop", ResourceType.TRANSACTIONAL_ID)
    if requirement.subject is Subject.CLUSTER:
        return allowed(requirement.operation, CLUSTER_NAME, ResourceType.CLUSTER)
    return allowed(requirement.operation, "orders", ResourceType.TOPIC)


def errors_in(value: object) -> Iterator[ErrorCode]:
    """Yields every error in an answer."""
    if isinstance(value, ErrorCode):
        yield value
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            yield from errors_in(getattr(value, name))
    elif isinstance(value, tuple):
        for each in value:
            yield from errors_in(each)


def test_every_request_between_nodes_has_a_requirement_and_a_case_here() -> None:
    served = {
        *STREAMED,
        *(kind for service, kinds in UNARY.items() if service not in GUARDED_ELSEWHERE for kind in kinds),
    }
    assert served - UNGUARDED == set(REQUIREMENTS), "docs/security.md names those that need no permission"
    assert {type(request) for request in REQUESTS} == set(REQUIREMENTS)


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: type(request).__name__)
def test_a_request_needs_its_permission_and_no_other(request_: messages.Request) -> None:
    requirement = REQUIREMENTS[type(request_)]
    assert guard(*entries_for(requirement)).admit(received(request_)) == received(request_)
    guarded = guard()
    admitted = guarded.admit(received(request_))
    if isinstance(request_, HIDING):
        assert guarded.unseen(received(request_), ("refunds",)) == {"orders"}
        (named,) = guarded.pop_denials()
        assert (named.cause_id, named.resource) == (CAUSE, "TOPIC:orders")
        return
    assert isinstance(admitted, Refused)
    assert type(admitted.response) is messages.RESPONSE_OF[type(request_)]
    assert DENIED & set(errors_in(admitted.response))
    (denial,) = guarded.pop_denials()
    assert (denial.principal, denial.operation) == ("User:alice", requirement.operation.name)


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: type(request).__name__)
def test_requests_without_a_principal_are_not_checked(request_: messages.Request) -> None:
    assert guard().admit(received(request_, None)) == received(request_, None)


def test_what_is_denied_is_answered_at_its_place_and_the_rest_goes_on() -> None:
    guarded = guard(allowed(AclOperation.WRITE, "b", ResourceType.TOPIC))
    admitted = guarded.admit(received(produce("a", "b", "c")))
    assert admitted == received(produce("b"))
    written = messages.ProducePartitionResponse(topic="b", partition=0, error=ErrorCode.NONE, base_offset=Offset(7))
    answer = SendResponse(
        request_id=RequestId(1), response=messages.ProduceResponse(partitions=(written,)), cause_id=CAUSE
    )
    completed = guarded.complete(answer).response
    assert isinstance(completed, messages.ProduceResponse)
    assert [(each.topic, each.error.name) for each in completed.partitions] == [
        ("a", "TOPIC_AUTHORIZATION_FAILED"),
        ("b", "NONE"),
        ("c", "TOPIC_AUTHORIZATION_FAILED"),
    ]
    assert guarded.complete(answer) == answer, "another answer has nothing to complete"


def test_a_follower_needs_the_cluster_and_a_consumer_the_topic() -> None:
    of_cluster = guard(allowed(AclOperation.CLUSTER_ACTION, CLUSTER_NAME, ResourceType.CLUSTER))
    assert of_cluster.admit(received(fetch("a", "b", replica_id=BROKER))) == received(
        fetch("a", "b", replica_id=BROKER)
    )
    of_topic = guard(allowed(AclOperation.READ, "a", ResourceType.TOPIC))
    refused = of_topic.admit(received(fetch("a", "b", replica_id=BROKER)))
    assert isinstance(refused, Refused)
    assert isinstance(refused.response, messages.FetchResponse)
    assert {each.error for each in refused.response.partitions} == {ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    assert [each.span for each in refused.response.partitions] == [None, None]


def test_a_transaction_needs_its_transactional_id_beside_the_topic() -> None:
    guarded = guard(allowed(AclOperation.WRITE, "a", ResourceType.TOPIC))
    refused = guarded.admit(received(produce("a", transactional_id="payments")))
    assert isinstance(refused, Refused)
    assert set(errors_in(refused.response)) == {ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED}


def test_positions_need_the_group_and_each_topic_and_in_a_transaction_its_transactional_id() -> None:
    of_group = allowed(AclOperation.READ, "shop", ResourceType.GROUP)
    of_topic = allowed(AclOperation.READ, "a", ResourceType.TOPIC)
    of_transaction = allowed(AclOperation.WRITE, "payments", ResourceType.TRANSACTIONAL_ID)
    refused = guard(of_group, of_topic).admit(received(commit("a", "b")))
    assert isinstance(refused, Refused)
    assert list(errors_in(refused.response)) == [ErrorCode.TOPIC_AUTHORIZATION_FAILED] * 2
    in_transaction = received(commit("a", transactional_id="payments"))
    refused = guard(of_group, of_topic).admit(in_transaction)
    assert isinstance(refused, Refused)
    assert list(errors_in(refused.response)) == [ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED]
    assert guard(of_group, of_topic, of_transaction).admit(in_transaction) == in_transaction


def test_all_positions_of_a_group_are_for_who_may_describe_all_topics() -> None:
    of_group = allowed(AclOperation.DESCRIBE, "shop", ResourceType.GROUP)
    of_one, of_all = (allowed(AclOperation.DESCRIBE, name, ResourceType.TOPIC) for name in ("a", "*"))
    asked = received(groups.OffsetFetchRequest(group_id="shop", partitions=None))
    assert isinstance(guard(of_group, of_one).admit(asked), Refused)
    assert guard(of_group, of_all).admit(asked) == asked


def test_create_on_the_cluster_permits_creating_topics() -> None:
    guarded = guard(allowed(AclOperation.CREATE, CLUSTER_NAME, ResourceType.CLUSTER))
    asked = admin.CreateTopicsRequest(topics=(admin.CreatableTopic(name="orders", topic_id=TopicId("t")),))
    assert guarded.admit(received(asked)) == received(asked)


@pytest.mark.parametrize("kind", HIDING)
def test_topics_that_are_not_named_are_left_out_without_a_denial(kind: type[messages.MetadataRequest]) -> None:
    guarded = guard(allowed(AclOperation.DESCRIBE, "orders", ResourceType.TOPIC))
    asked = kind(topics=())
    assert guarded.unseen(received(asked), ("orders", "refunds")) == {"refunds"}
    assert guarded.unseen(received(asked, None), ("orders", "refunds")) == frozenset()
    assert guarded.pop_denials() == []


def test_alter_of_the_cluster_permits_writing_markers() -> None:
    guarded = guard(allowed(AclOperation.ALTER, CLUSTER_NAME, ResourceType.CLUSTER))
    asked = transactions.WriteTxnMarkersRequest(markers=())
    assert guarded.admit(received(asked)) == received(asked)
    assert guarded.pop_denials() == []


def test_a_producer_id_is_for_who_may_write_to_any_topic() -> None:
    guarded = guard(allowed(AclOperation.WRITE, "orders", ResourceType.TOPIC))
    assert guarded.admit(received(messages.InitProducerIdRequest())) == received(messages.InitProducerIdRequest())


def test_brokers_pass_on_requests_if_they_may_and_the_client_may() -> None:
    request = admin.DeleteTopicsRequest(topics=("orders",))
    forwarded = received(request, Requester("User:alice", forwarder="User:broker-1"))
    of_client = allowed(AclOperation.DELETE, "orders", ResourceType.TOPIC)
    of_broker = allowed(AclOperation.CLUSTER_ACTION, CLUSTER_NAME, ResourceType.CLUSTER, "User:broker-1")
    assert guard(of_client, of_broker).admit(forwarded) == forwarded
    assert isinstance(guard(of_client).admit(forwarded), Refused)
    assert isinstance(guard(of_broker).admit(forwarded), Refused)


def test_a_denial_is_reported_once_until_permissions_change() -> None:
    store = AclStore()
    guarded = RequestGuard(Authorizer(NodeProperties(), store))
    for _ in range(3):
        guarded.admit(received(fetch("orders")))
    assert len(guarded.pop_denials()) == 1
    store.add(1, allowed(AclOperation.READ, "refunds", ResourceType.TOPIC))
    guarded.admit(received(fetch("orders")))
    assert len(guarded.pop_denials()) == 1


def test_configuration_of_brokers_needs_the_cluster() -> None:
    guarded = guard(allowed(AclOperation.ALTER_CONFIGS, "orders", ResourceType.TOPIC))
    resources = tuple(
        admin.AlterConfigsResource(resource=kind, resource_name=name, configs=())
        for kind, name in ((ConfigResource.TOPIC, "orders"), (ConfigResource.BROKER, ""))
    )
    admitted = guarded.admit(received(admin.IncrementalAlterConfigsRequest(resources=resources)))
    assert admitted == received(admin.IncrementalAlterConfigsRequest(resources=resources[:1]))
    done = admin.ConfigResourceResult(resource=ConfigResource.TOPIC, resource_name="orders", error=ErrorCode.NONE)
    answer = admin.IncrementalAlterConfigsResponse(resources=(done,))
    completed = guarded.complete(SendResponse(request_id=RequestId(1), response=answer, cause_id=CAUSE)).response
    assert list(errors_in(completed)) == [ErrorCode.NONE, ErrorCode.CLUSTER_AUTHORIZATION_FAILED]


def test_the_metadata_stream_is_for_brokers() -> None:
    of_cluster = allowed(AclOperation.CLUSTER_ACTION, CLUSTER_NAME, ResourceType.CLUSTER)
    assert guard(of_cluster).may_read_metadata(ALICE)
    assert guard().may_read_metadata(None)
    guarded = guard()
    guarded.admit(received(fetch("orders")))
    guarded.pop_denials()
    assert not guarded.may_read_metadata(ALICE)
    (denial,) = guarded.pop_denials()
    assert (denial.api, denial.cause_id) == ("Stream", "stream")
