"""Access control entries at a controller: added, described, removed, and asked about by its own requests."""

import msgspec

from laststand.emulator.core import admin_messages as admin
from laststand.emulator.core import events, messages
from laststand.emulator.core.acls import (
    CLUSTER_NAME,
    AccessControlEntry,
    AclFilter,
    AclOperation,
    ResourceType,
    matching_filter,
)
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.properties import STANDARD_AUTHORIZER, NodeProperties
from laststand.emulator.core.requester import Requester, node_principal
from laststand.emulator.core.switches import Switches
from laststand.emulator.core.types import BrokerEpoch, NodeId
from tests.unit.core.controller.controller_driver import ORDERS, ControllerDriver, ids

ALICE = Requester("User:alice")


def of_broker(node_id: int) -> Requester:
    return Requester(node_principal(NodeId(node_id)))


def cluster_action(node_id: int) -> AccessControlEntry:
    return AccessControlEntry(
        resource_type=ResourceType.CLUSTER,
        resource_name=CLUSTER_NAME,
        principal=of_broker(node_id).principal,
        operation=AclOperation.CLUSTER_ACTION,
    )


def on_topic(operation: AclOperation, name: str) -> AccessControlEntry:
    return AccessControlEntry(
        resource_type=ResourceType.TOPIC, resource_name=name, principal=ALICE.principal, operation=operation
    )


def driver(class_name: str = STANDARD_AUTHORIZER) -> ControllerDriver:
    made = ControllerDriver(
        Switches(),
        NodeProperties(authorizer_class_name=class_name, auto_leader_rebalance_enable=False),  # type: ignore[arg-type]
    )
    made.boot(0, 1)
    made.create_topic("orders", ids(0, 1))
    return made


def create(made: ControllerDriver, *entries: AccessControlEntry) -> list[str]:
    answer = made.ask(admin.CreateAclsRequest(acls=entries), admin.CreateAclsResponse)
    return [result.error.name for result in answer.results]


def delete(made: ControllerDriver, *filters: AclFilter) -> list[int]:
    answer = made.ask(admin.DeleteAclsRequest(filters=filters), admin.DeleteAclsResponse)
    return [len(result.acls) for result in answer.results]


def describe(made: ControllerDriver, asked: AclFilter | None = None) -> tuple[AccessControlEntry, ...]:
    answer = made.ask(admin.DescribeAclsRequest(filter=asked or AclFilter()), admin.DescribeAclsResponse)
    assert answer.error is ErrorCode.NONE
    return answer.acls


def test_entries_are_added_once_described_and_removed_by_filters() -> None:
    made = driver()
    read, write = on_topic(AclOperation.READ, "orders"), on_topic(AclOperation.WRITE, "orders")
    assert create(made, read, write, on_topic(AclOperation.ANY, "orders")) == ["NONE", "NONE", "INVALID_REQUEST"]
    end = made.image.next_offset
    assert create(made, read) == ["NONE"]
    assert made.image.next_offset == end, "one that is there writes nothing"
    assert describe(made) == (read, write)
    assert describe(made, AclFilter(operation=AclOperation.WRITE)) == (write,)
    assert delete(made, matching_filter(read), AclFilter(principal="User:bob")) == [1, 0]
    assert describe(made) == (write,)


def test_entries_are_there_after_a_restart() -> None:
    made = driver()
    create(made, on_topic(AclOperation.READ, "orders"), on_topic(AclOperation.WRITE, "orders"))
    delete(made, AclFilter(operation=AclOperation.READ))
    made.restart()
    assert describe(made) == (on_topic(AclOperation.WRITE, "orders"),)


def test_without_an_authorizer_there_are_none() -> None:
    made = driver("")
    assert create(made, on_topic(AclOperation.READ, "orders")) == ["SECURITY_DISABLED"]
    answer = made.ask(admin.DescribeAclsRequest(filter=AclFilter()), admin.DescribeAclsResponse)
    assert (answer.error, answer.error_message) == (ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
    removed = made.ask(admin.DeleteAclsRequest(filters=(AclFilter(),)), admin.DeleteAclsResponse)
    assert removed.results[0].error is ErrorCode.SECURITY_DISABLED


def test_a_leader_without_cluster_action_changes_no_isr() -> None:
    """KIP-497: AlterIsr needs CLUSTER_ACTION, and answers CLUSTER_AUTHORIZATION_FAILED without it."""
    made = driver()
    request = made.alter_request(0, (0,))
    refused = made.ask(request, messages.AlterPartitionResponse, of_broker(0))
    assert (refused.error, refused.partitions) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ())
    verdict = next(event for event in made.events if isinstance(event, events.AlterPartitionDecided))
    assert verdict.error == "CLUSTER_AUTHORIZATION_FAILED"
    create(made, cluster_action(0))
    assert made.ask(request, messages.AlterPartitionResponse, of_broker(0)).error is ErrorCode.NONE


def test_heartbeats_and_the_metadata_stream_of_a_broker_need_cluster_action() -> None:
    made = driver()
    create(made, cluster_action(0))
    answers = [
        made.ask(made.heartbeat_request(each), messages.BrokerHeartbeatResponse, of_broker(each)).error
        for each in (0, 1)
    ]
    assert answers == [ErrorCode.NONE, ErrorCode.CLUSTER_AUTHORIZATION_FAILED]
    assert made.controller.may_read_metadata(of_broker(0))
    assert not made.controller.may_read_metadata(of_broker(1))


def test_topics_without_the_permission_stay_and_the_others_are_deleted() -> None:
    made = driver()
    made.create_topic("refunds", ids(0, 1))
    create(made, on_topic(AclOperation.DELETE, "refunds"))
    answer = made.ask(admin.DeleteTopicsRequest(topics=("orders", "refunds")), admin.DeleteTopicsResponse, ALICE)
    assert [(each.name, each.error.name) for each in answer.topics] == [
        ("orders", "TOPIC_AUTHORIZATION_FAILED"),
        ("refunds", "NONE"),
    ]
    assert set(made.image.topics) == {"orders"}


def test_describing_topics_needs_describe() -> None:
    made = driver()
    asked = messages.DescribeTopicPartitionsRequest()
    assert not made.ask(asked, messages.DescribeTopicPartitionsResponse, ALICE).topics
    create(made, on_topic(AclOperation.DESCRIBE, "orders"))
    (topic,) = made.ask(asked, messages.DescribeTopicPartitionsResponse, ALICE).topics
    assert topic.name == "orders"


def test_a_denial_is_an_event() -> None:
    made = driver()
    made.ask(made.heartbeat_request(1), messages.BrokerHeartbeatResponse, of_broker(1))
    (denial,) = [event for event in made.events if isinstance(event, events.AuthorizationDenied)]
    assert (denial.api, denial.principal, denial.operation, denial.resource) == (
        "BrokerHeartbeat",
        "User:broker-1",
        "CLUSTER_ACTION",
        "CLUSTER:kafka-cluster",
    )


def test_an_isr_change_that_is_forged_is_stopped_by_an_old_broker_epoch_and_not_by_the_name() -> None:
    """S54: CLUSTER_ACTION is of every broker, and the broker epoch is in the metadata that all of them read."""
    made = driver()
    create(made, cluster_action(0), cluster_action(1))
    assert made.ask(made.alter_request(0, (0,)), messages.AlterPartitionResponse, of_broker(0)).error is ErrorCode.NONE
    forged = made.alter_request(0, (0, 1))
    end, lagging = made.image.next_offset, made.image.partitions[ORDERS]
    denied = made.ask(forged, messages.AlterPartitionResponse, ALICE)
    assert denied.error is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    old = msgspec.structs.replace(forged, broker_epoch=BrokerEpoch(forged.broker_epoch - 1))
    refused = made.ask(old, messages.AlterPartitionResponse, of_broker(1))
    assert refused.error is ErrorCode.STALE_BROKER_EPOCH
    assert (made.image.next_offset, made.image.partitions[ORDERS]) == (end, lagging)

    assert made.ask(forged, messages.AlterPartitionResponse, of_broker(1)).error is ErrorCode.NONE
    made.heartbeat(1)
    made.heartbeat(0, "fence")
    assert made.image.partitions[ORDERS].leader == 1, "which may lack what was acknowledged without it"
