"""The permission of each API: asked by those who have it, by those who have none, and what the answers hide."""

import asyncio
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from laststand.emulator.core import events, transaction_messages
from laststand.emulator.core.acl_store import AclStore
from laststand.emulator.core.acls import CLUSTER_NAME, AccessControlEntry, AclOperation, ResourceType
from laststand.emulator.core.authorizer.authorizer import Authorizer
from laststand.emulator.core.authorizer.denials import RecordingAuthorizer
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.requester import Requester
from laststand.emulator.core.types import TopicPartition
from laststand.emulator.kafka_listener.listener import _HANDLERS
from laststand.emulator.kafka_listener.message_codec import Writer, response_codec
from laststand.emulator.kafka_listener.messages import Api, FieldDefinition, Message, all_apis, api_named
from laststand.emulator.kafka_listener.permissions import RULES, Hidden, answer_as_allowed
from laststand.emulator.kafka_listener.requests import ClientRequest, Served

DENIED = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
AROUND = [name for name, rule in RULES.items() if type(rule).__name__ != "_OwnCheck"]
"""APIs whose rule stands around the handler."""

SAMPLES: dict[str, Any] = {"string": "orders", "bytes": b"", "records": b"", "bool": False, "uuid": "A" * 22}


def sample(fields: tuple[FieldDefinition, ...], version: int) -> Message:
    """Returns a message with one element in each of its arrays."""
    found: Message = {}
    for field in fields:
        if version not in field.versions:
            found[field.name] = field.default
            continue
        one = sample(field.fields, version) if field.fields else SAMPLES.get(field.type, 0)
        found[field.name] = [one] if field.is_array else one
    return found


def served(*entries: AccessControlEntry, super_users: str = "") -> tuple[Served, list[events.Event]]:
    store, denials = AclStore(), list[events.Event]()
    for acl_id, entry in enumerate(entries):
        store.add(acl_id, entry)
    unused = dict.fromkeys(Served._fields, cast(Any, None))
    found = Served(
        **{
            **unused,
            "history": SimpleNamespace(process_of=lambda _: "kafka-1"),
            "broker": SimpleNamespace(image=SimpleNamespace(topic_names={})),
            "permissions": RecordingAuthorizer(Authorizer(NodeProperties(super_users=super_users), store)),
            "note_denial": denials.append,
        }
    )
    return found, denials


def ask(api: Api, version: int, asked: Served) -> tuple[Message | None, list[Message]]:
    """Returns the answer to a request of alice, and the requests that reached the handler."""
    reached: list[Message] = []

    async def handler(_: Served, request: ClientRequest) -> Message:
        reached.append(request.body)
        return sample(api.response, version)

    connection = cast(Any, SimpleNamespace(requester=Requester("User:alice", "10.0.0.1")))
    request = ClientRequest(api.key, version, sample(api.request, version), connection)
    return asyncio.run(answer_as_allowed(asked, request, handler)), reached


def errors_in(value: object) -> Iterator[int]:
    if isinstance(value, dict):
        for name, each in value.items():
            if name.lower().endswith("errorcode"):
                yield each
            yield from errors_in(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from errors_in(each)


VERSIONS = [
    (name, version)
    for name in AROUND
    for version in range(api_named(name).versions.first, api_named(name).versions.last + 1)
]


def test_every_api_that_is_served_has_a_rule() -> None:
    assert set(RULES) == {api.name for api in all_apis().values()}
    assert {api_named(name).key for name in RULES} - _HANDLERS.keys() == {api_named("ApiVersions").key}


@pytest.mark.parametrize(("name", "version"), VERSIONS)
def test_a_refusal_without_permission_has_the_form_of_the_api(name: str, version: int) -> None:
    api = api_named(name)
    asked, denials = served()
    answer, reached = ask(api, version, asked)
    assert answer is not None
    rule = RULES[name]
    if isinstance(rule, Hidden):
        assert answer[rule.answered] == []
    else:
        assert DENIED & set(errors_in(answer))
        assert denials, "a denial is on record"
        assert not reached or name == "OffsetFetch"
    response_codec(api.key, version).write(answer, Writer())


@pytest.mark.parametrize(("name", "version"), VERSIONS)
def test_requests_of_a_super_user_reach_the_handler(name: str, version: int) -> None:
    api = api_named(name)
    asked, denials = served(super_users="User:alice")
    answer, reached = ask(api, version, asked)
    assert answer is not None
    assert not denials
    assert len(reached) == 1
    assert answer.items() <= {**sample(api.response, version), **answer}.items()


def test_topics_are_refused_one_by_one() -> None:
    asked, _ = served(allowed(AclOperation.DESCRIBE, "orders", ResourceType.TOPIC))
    api = api_named("ListOffsets")
    topics = [{"name": name, "partitions": [{"partitionIndex": 3}]} for name in ("orders", "refunds")]

    async def handler(_: Served, request: ClientRequest) -> Message:
        found = [{"partitionIndex": 3, "errorCode": ErrorCode.NONE}]
        return {"topics": [{"name": topic["name"], "partitions": found} for topic in request.body["topics"]]}

    connection = cast(Any, SimpleNamespace(requester=Requester("User:alice")))
    request = ClientRequest(api.key, 7, {"topics": topics}, connection)
    answer = asyncio.run(answer_as_allowed(asked, request, handler))
    assert answer is not None
    found = {topic["name"]: topic["partitions"][0]["errorCode"] for topic in answer["topics"]}
    assert found == {"orders": ErrorCode.NONE, "refunds": ErrorCode.TOPIC_AUTHORIZATION_FAILED}


def allowed(operation: AclOperation, name: str, resource_type: ResourceType) -> AccessControlEntry:
    return AccessControlEntry(
        resource_type=resource_type, resource_name=name, principal="User:alice", operation=operation
    )


def test_alter_of_the_cluster_permits_writing_markers() -> None:
    asked, denials = served(allowed(AclOperation.ALTER, CLUSTER_NAME, ResourceType.CLUSTER))
    _, reached = ask(api_named("WriteTxnMarkers"), 1, asked)
    assert (len(reached), denials) == (1, [])


@pytest.mark.parametrize(("version", "shown"), [(1, [ErrorCode.GROUP_AUTHORIZATION_FAILED]), (2, [])])
def test_a_denied_group_is_answered_where_the_version_has_a_place_for_it(version: int, shown: list[ErrorCode]) -> None:
    asked, _ = served()
    answer, _ = ask(api_named("OffsetFetch"), version, asked)
    assert answer is not None
    assert [each["errorCode"] for topic in answer["topics"] for each in topic["partitions"]] == shown


def test_a_topic_given_by_its_id_is_denied_without_its_name() -> None:
    asked, denials = served()
    topic_id = "T" * 21 + "A"
    image = SimpleNamespace(topics={"orders": topic_id}, topic_names={topic_id: "orders"}, brokers={})
    asked = asked._replace(broker=cast(Any, SimpleNamespace(image=image, controller=None)), endpoints={})
    api = api_named("Metadata")
    body = {**sample(api.request, 13), "topics": [{"name": None, "topicId": topic_id}]}
    connection = cast(Any, SimpleNamespace(requester=Requester("User:alice")))
    answer = asyncio.run(answer_as_allowed(asked, ClientRequest(api.key, 13, body, connection), _HANDLERS[api.key]))
    assert answer is not None
    assert answer["topics"] == [{"errorCode": ErrorCode.TOPIC_AUTHORIZATION_FAILED, "name": None, "topicId": topic_id}]
    assert len(denials) == 1


def test_topics_of_a_transaction_are_left_out_that_may_not_be_described() -> None:
    asked, denials = served(
        allowed(AclOperation.DESCRIBE, "payments", ResourceType.TRANSACTIONAL_ID),
        allowed(AclOperation.DESCRIBE, "orders", ResourceType.TOPIC),
    )
    found = transaction_messages.DescribeTransactionResponse(
        error=ErrorCode.NONE, state="Ongoing", partitions=(TopicPartition("orders", 1), TopicPartition("refunds", 0))
    )

    async def of_the_core(_: object) -> object:
        return SimpleNamespace(response=found)

    api = api_named("DescribeTransactions")
    connection = cast(Any, SimpleNamespace(requester=Requester("User:alice")))
    request = ClientRequest(api.key, 0, {"transactionalIds": ["payments"]}, connection)
    asked = asked._replace(core=cast(Any, SimpleNamespace(ask=of_the_core)))
    answer = asyncio.run(answer_as_allowed(asked, request, _HANDLERS[api.key]))
    assert answer is not None
    assert [each["topics"] for each in answer["transactionStates"]] == [[{"topic": "orders", "partitions": [1]}]]
    assert denials == []


def test_without_an_authorizer_the_handler_is_all_there_is() -> None:
    asked, _ = served()
    answer, reached = ask(api_named("DeleteGroups"), 2, asked._replace(permissions=None))
    assert answer == sample(api_named("DeleteGroups").response, 2)
    assert len(reached) == 1
