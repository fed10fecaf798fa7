"""Permissions at a broker, by the access control entries that its metadata has."""

import pytest

from laststand.emulator.core import messages
from laststand.emulator.core.acls import CLUSTER_NAME, AccessControlEntry, AclOperation, ResourceType
from laststand.emulator.core.broker.kraft.broker import Broker
from laststand.emulator.core.effects import CloseConnection
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.inputs import RequestReceived
from laststand.emulator.core.properties import STANDARD_AUTHORIZER, NodeProperties
from laststand.emulator.core.records import AccessControlEntryRecord, RemoveAccessControlEntryRecord
from laststand.emulator.core.requester import Requester, node_principal
from laststand.emulator.core.types import MetadataOffset, RequestId
from tests.unit.core.broker.hosting import FIRST, NAME, TOPIC_ID
from tests.unit.core.broker.kraft.test_broker_steps import CAUSE, Life, error_of, fetch, produce

ALICE = Requester("User:alice")
FOLLOWER = Requester(node_principal(FIRST))


@pytest.fixture
def life() -> Life:
    made = Life(properties=NodeProperties(authorizer_class_name=STANDARD_AUTHORIZER))
    made.serve()
    return made


def allow(life: Life, operation: AclOperation, requester: Requester = ALICE, topic: str | None = NAME.topic) -> int:
    """Has the broker read an entry; returns its id."""
    acl_id = life.broker.image.next_offset
    entry = AccessControlEntry(
        resource_type=ResourceType.CLUSTER if topic is None else ResourceType.TOPIC,
        resource_name=CLUSTER_NAME if topic is None else topic,
        principal=requester.principal,
        operation=operation,
    )
    life.metadata(AccessControlEntryRecord(entry=entry))
    return acl_id


def fetched(life: Life, requester: Requester) -> ErrorCode:
    answer = life.answers[life.ask(fetch(0, max_wait_ms=0), requester)]
    assert isinstance(answer, messages.FetchResponse)
    return answer.partitions[0].error


def test_records_are_taken_from_those_who_may_write_and_as_soon_as_the_broker_knows(life: Life) -> None:
    refused = life.answers[life.ask(produce(acks=1), ALICE)]
    assert error_of(refused) is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    acl_id = allow(life, AclOperation.WRITE)
    assert error_of(life.answers[life.ask(produce(acks=1), ALICE)]) is ErrorCode.NONE
    life.metadata(RemoveAccessControlEntryRecord(acl_id=MetadataOffset(acl_id)))
    assert error_of(life.answers[life.ask(produce(acks=1), ALICE)]) is ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_records_that_nobody_waits_for_are_refused_by_closing_the_connection(life: Life) -> None:
    received = RequestReceived(cause_id=CAUSE, request_id=RequestId(9), request=produce(acks=0), requester=ALICE)
    assert life.step(received)[-1] == CloseConnection(request_id=RequestId(9))


def test_a_follower_without_cluster_action_is_given_no_records(life: Life) -> None:
    assert fetched(life, FOLLOWER) is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    allow(life, AclOperation.CLUSTER_ACTION, FOLLOWER, topic=None)
    assert fetched(life, FOLLOWER) is ErrorCode.NONE


def test_topics_are_hidden_from_principals_without_describe(life: Life) -> None:
    """KIP-966: DescribeTopicPartitions needs DESCRIBE of a topic."""

    def seen(*topics: str) -> list[tuple[str, str]]:
        described = life.answers[life.ask(messages.DescribeTopicPartitionsRequest(topics=topics), ALICE)]
        assert isinstance(described, messages.DescribeTopicPartitionsResponse)
        listed = life.answers[life.ask(messages.MetadataRequest(topics=topics), ALICE)]
        assert isinstance(listed, messages.MetadataResponse)
        found = [(topic.name, topic.error.name) for topic in described.topics]
        assert found == [(topic.name, topic.error.name) for topic in listed.topics]
        return found

    assert seen() == []
    assert seen(NAME.topic) == [(NAME.topic, "TOPIC_AUTHORIZATION_FAILED")]
    assert seen("nowhere") == [("nowhere", "TOPIC_AUTHORIZATION_FAILED")], "whether it exists stays hidden"
    allow(life, AclOperation.DESCRIBE)
    assert seen() == seen(NAME.topic) == [(NAME.topic, "NONE")]


def test_the_end_of_a_log_is_for_those_with_cluster_action(life: Life) -> None:
    """KIP-966: GetReplicaLogInfo needs CLUSTER_ACTION."""

    def end() -> messages.ReplicaLogInfo:
        answer = life.answers[life.ask(messages.GetReplicaLogInfoRequest(partitions=((TOPIC_ID, 0),)), ALICE)]
        assert isinstance(answer, messages.GetReplicaLogInfoResponse)
        return answer.partitions[0]

    assert (end().error, end().log_end_offset) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, None)
    allow(life, AclOperation.CLUSTER_ACTION, topic=None)
    assert (end().error, end().log_end_offset) == (ErrorCode.NONE, 0)


def test_a_broker_without_an_authorizer_checks_no_permission() -> None:
    open_to_all = Life()
    open_to_all.serve()
    assert isinstance(open_to_all.broker, Broker)
    assert error_of(open_to_all.answers[open_to_all.ask(produce(acks=1), ALICE)]) is ErrorCode.NONE
