"""The permission of each API: asked by those who have it, by those who have none, and what the answers hide."""

import asyncio
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from laststand.emulator.core import events
from laststand.emulator.core.acl_store import AclStore
from laststand.emulator.core.acls import AccessControlEntry, AclOperation, ResourceType
from laststand.emulator.core.authorizer.authorizer import Authorizer
from laststand.emulator.core.authorizer.denials import RecordingAuthorizer
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.requester import Requester
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
def test_who_has_no_permission_is_refused_in_the_form_of_the_api(name: str, version: int) -> None:
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
def test_who_may_do_everything_is_answered_by_the_handler(name: str, version: int) -> None:
    api = api_named(name)
    asked, denials = served(super_users="User:alice")
    answer, reached = ask(api, version, asked)
    assert answer is not None
    assert not denials
    assert len(reached) == 1
    assert answer.items() <= {**sample(api.response, version), **answer}.items()


def test_topics_are_refused_one_by_one() -> None:
    entry = AccessControlEntry(
        resource_type=ResourceType.TOPIC,
        resource_name="orders",
        principal="User:alice",
        operation=AclOperation.DESCRIBE,
    )
    asked, _ = served(entry)
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


def test_without_an_authorizer_the_handler_is_all_there_is() -> None:
    asked, _ = served()
    answer, reached = ask(api_named("DeleteGroups"), 2, asked._replace(permissions=None))
    assert answer == sample(api_named("DeleteGroups").response, 2)
    assert len(reached) == 1
