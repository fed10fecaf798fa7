"""Positions of groups in requests and responses of Kafka's protocol, as the history records them."""

import time
from collections.abc import Callable, Iterator
from typing import Final, Literal, TypeAlias

from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import Offset, TopicId, TopicPartition
from laststand.emulator.kafka_listener.client_history import ALL_TOPICS, Position
from laststand.emulator.kafka_listener.messages import Message, api_named
from laststand.emulator.kafka_listener.requests import ClientRequest, Handler, Served

_COMMIT: Final = api_named("OffsetCommit").key
_COMMIT_IN_TRANSACTION: Final = api_named("TxnOffsetCommit").key
_FETCH: Final = api_named("OffsetFetch").key
_DELETE: Final = api_named("OffsetDelete").key
_DELETE_GROUPS: Final = api_named("DeleteGroups").key

POSITION_APIS: Final = frozenset({_COMMIT, _COMMIT_IN_TRANSACTION, _FETCH, _DELETE, _DELETE_GROUPS})

_KNOWN_ERRORS: Final = frozenset(int(error) for error in ErrorCode)

TopicOf: TypeAlias = Callable[[str | None, TopicId | None], tuple[str, TopicId | None]]
"""Returns name and id of a topic of which a request has one."""

_Found: TypeAlias = tuple[str, Message, int, int, int | None]
"""Group, topic, partition, offset and error."""


def kind_of(key: int) -> Literal["commit", "fetch"]:
    """Returns the kind of a request about positions; a deletion commits no positions."""
    return "fetch" if key == _FETCH else "commit"


def positions(key: int, body: Message, answer: Message | None, topic_of: TopicOf) -> list[Position]:
    """Returns the positions that a request commits, or that its answer gives.

    Args:
        key: of the API.
        body: the request.
        answer: its response; ``None`` if there was none.
        topic_of: knows names and ids of topics.
    """
    if key == _DELETE_GROUPS:
        return list(_deleted_groups(body, answer))
    found = []
    for group, topic, index, offset, error in _found(key, body, answer):
        name, topic_id = topic_of(*named(topic, topic["name"]))
        outcome = None if error is None else known_error(error)
        if outcome is ErrorCode.NONE and key == _COMMIT_IN_TRANSACTION:  # which may be aborted
            outcome = None
        found.append(Position(group, TopicPartition(name, index), topic_id, known_offset(offset), outcome))
    return found


async def with_positions_on_record(served: Served, request: ClientRequest, answer: Handler) -> Message | None:
    """Answers a request about positions, and records them; commits are recorded before they are carried out, too."""
    history, key, body = served.history, request.key, request.body
    kind, begun_ns = kind_of(key), time.monotonic_ns()
    asked = positions(key, body, None, served.topic_of)
    begun = history.begin_commits(request.connection, asked, begun_ns=begun_ns)
    answered: Message | None = None
    try:
        answered = await answer(served, request)
    finally:
        found = positions(key, body, answered, served.topic_of)
        history.add_positions(request.connection, kind, found, begun_ns=begun_ns, begun=begun)
    return answered


def named(topic: Message, name: str) -> tuple[str | None, TopicId | None]:
    """Returns the name or the id by which a request names a topic."""
    return (None, TopicId(topic["topicId"])) if topic.get("topicId") else (name, None)


def known_error(number: int) -> ErrorCode:
    """Returns the error with a number; one error stands for all unknown numbers."""
    return ErrorCode(number) if number in _KNOWN_ERRORS else ErrorCode.UNKNOWN_SERVER_ERROR


def known_offset(number: int) -> Offset | None:
    """Returns an offset; ``None`` for -1."""
    return Offset(number) if number >= 0 else None


def _found(key: int, body: Message, answer: Message | None) -> Iterator[_Found]:
    return _given(body, answer) if key == _FETCH else _changed(body, answer)


def _changed(body: Message, answer: Message | None) -> Iterator[_Found]:
    """Yields the positions that a request commits or deletes."""
    errors = {
        (topic.get("topicId") or topic["name"], each["partitionIndex"]): each["errorCode"]
        for topic in ((answer or {}).get("topics") or ())
        for each in topic["partitions"]
    }
    of_all = (answer or {}).get("errorCode") or None
    for topic in body["topics"]:
        name = topic.get("topicId") or topic["name"]
        for each in topic["partitions"]:
            index = each["partitionIndex"]
            yield body["groupId"], topic, index, each.get("committedOffset", -1), errors.get((name, index), of_all)


def _given(body: Message, answer: Message | None) -> Iterator[_Found]:
    """Yields the positions that an answer gives."""
    if answer is None:
        return
    groups = answer.get("groups") or [{**answer, "groupId": body["groupId"]}]
    for group in groups:
        for topic in group.get("topics") or ():
            for each in topic["partitions"]:
                yield group["groupId"], topic, each["partitionIndex"], each["committedOffset"], each["errorCode"]


def _deleted_groups(body: Message, answer: Message | None) -> Iterator[Position]:
    errors = {each["groupId"]: each["errorCode"] for each in (answer or {}).get("results") or ()}
    for group in body["groupsNames"]:
        error = known_error(errors[group]) if group in errors else None
        yield Position(group, ALL_TOPICS, None, None, error)
