"""Positions that are given after commits are what a walk over all pairs says, and thousands take no time."""

import random
from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec
import pytest

from laststand.emulator.core.history import GroupPositionOperation, OperationType
from laststand.emulator.core.types import CauseId, NodeId, Offset, TopicId
from laststand.emulator.verification.facts.answered_positions import PositionAfterCommit, positions_after_commits
from laststand.emulator.verification.facts.cluster import ClusterFacts

OK, INFO, FAIL, INVOKE = OperationType.OK, OperationType.INFO, OperationType.FAIL, OperationType.INVOKE


def operation(draw: random.Random, number: int) -> GroupPositionOperation:
    operation_type = draw.choice((OK, OK, OK, OK, INFO, FAIL))
    return GroupPositionOperation(
        index=number,
        time_ns=number,
        type=operation_type,
        process="kafka:shop@1000->0-0.1",
        operation_id=CauseId(f"position-{number}"),
        kind=draw.choice(("commit", "fetch")),
        group_id=draw.choice(("buyers", "sellers")),
        topic="orders",
        topic_id=draw.choice((None, TopicId("first"), TopicId("second"))),
        partition=draw.randrange(2),
        node=NodeId(0),
        offset=draw.choice((None, Offset(draw.randrange(20)))),
        begun_ns=number - draw.randrange(5),
        error=draw.choice((None, "NOT_COORDINATOR")) if operation_type is INFO else None,
    )


def is_unanswered(commit: GroupPositionOperation) -> bool:
    return commit.type is INFO and commit.error is None


def slowly(operations: Sequence[GroupPositionOperation]) -> Iterator[PositionAfterCommit]:
    """Compares each position with each commit."""
    for given in operations:
        commits = [
            each
            for each in operations
            if each.kind == "commit"
            and each.type is not FAIL
            and (each.group_id, each.partition) == (given.group_id, given.partition)
        ]
        answered = [each for each in commits if each.type is OK and each.topic_id == given.topic_id]
        before = [each for each in answered if each.time_ns < given.begun_ns]
        if given.kind == "commit" or given.type is not OK or not before:
            continue
        last = before[-1]
        rivals = [each for each in commits if is_unanswered(each) or each.time_ns >= last.begun_ns]
        lowest = min(-1 if each.offset is None else each.offset for each in (last, *rivals))
        yield PositionAfterCommit(last, given, lowest)


@pytest.mark.parametrize("seed", range(20))
def test_positions_are_those_of_a_slow_walk(seed: int) -> None:
    draw = random.Random(seed)
    operations = [operation(draw, number) for number in range(200)]
    cluster = ClusterFacts()
    cluster.group_positions = draw.sample(operations, len(operations))
    found = sorted(positions_after_commits(cluster), key=lambda each: each.given.index)
    assert found == list(slowly(operations))
    assert found


@pytest.mark.timeout(20)
def test_many_commits_are_walked_once() -> None:
    draw = random.Random(0)
    cluster = ClusterFacts()
    cluster.group_positions = [operation(draw, number) for number in range(20_000)]
    assert any(True for _ in positions_after_commits(cluster))
    assert len(list(positions_after_commits(cluster))) > 5_000


def line(
    number: int,
    kind: Literal["commit", "fetch"],
    offset: int | None,
    operation_type: OperationType = OK,
    topic: str = "orders",
) -> GroupPositionOperation:
    return GroupPositionOperation(
        index=number,
        time_ns=10 * number + 5,
        type=operation_type,
        process="kafka:shop@1000->0-0.1",
        operation_id=CauseId(f"position-{number}"),
        kind=kind,
        group_id="buyers",
        topic=topic,
        topic_id=TopicId("first") if topic else None,
        partition=0,
        node=NodeId(0),
        offset=None if offset is None else Offset(offset),
        begun_ns=10 * number,
    )


@pytest.mark.parametrize(
    ("between", "is_behind"),
    [
        ([], True),
        ([line(1, "commit", None, topic="")], False),
        ([line(1, "commit", None, FAIL, topic="")], True),
        ([line(1, "commit", None)], False),
        ([line(1, "commit", 3, INVOKE)], False),
        (
            [
                line(1, "commit", 3, INVOKE),
                msgspec.structs.replace(line(2, "commit", 3, FAIL), operation_id=CauseId("position-1")),
            ],
            True,
        ),
        ([msgspec.structs.replace(line(1, "commit", 3, INFO), error="NOT_COORDINATOR")], False),
        ([msgspec.structs.replace(line(1, "commit", 3, INFO), error="NOT_COORDINATOR"), line(2, "commit", 10)], True),
        ([line(1, "commit", 3, INFO), line(2, "commit", 10)], False),
    ],
    ids=[
        "nothing",
        "group deleted",
        "group not deleted",
        "position deleted",
        "broker died",
        "refused",
        "perhaps refused",
        "then committed",
        "unanswered",
    ],
)
def test_a_position_goes_back_by_itself_unless_something_may_have_taken_it_back(
    between: list[GroupPositionOperation],
    is_behind: bool,  # noqa: FBT001
) -> None:
    cluster = ClusterFacts()
    given = line(9, "fetch", None if any(each.offset is None for each in between) else 3)
    cluster.group_positions = [line(0, "commit", 10), *between, given]
    [found] = positions_after_commits(cluster)
    assert found.is_behind is is_behind


def test_an_error_gives_no_position() -> None:
    cluster = ClusterFacts()
    refused = msgspec.structs.replace(line(1, "fetch", None, INFO), error="NOT_COORDINATOR")
    cluster.group_positions = [line(0, "commit", 10), refused]
    assert list(positions_after_commits(cluster)) == []
