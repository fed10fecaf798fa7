"""DescribeTopicPartitions: what a page holds, and where the next one begins (KIP-966)."""

from collections.abc import Iterable

import msgspec
import pytest

from laststand.emulator.core import messages
from laststand.emulator.core.describe import describe_topic_partitions
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.switches import Switches
from laststand.emulator.core.types import LeaderRecoveryState, TopicPartition
from tests.unit.core.controller.controller_driver import ControllerDriver, ids


def driver() -> ControllerDriver:
    made = ControllerDriver(Switches(), NodeProperties(min_insync_replicas=2, auto_leader_rebalance_enable=False))
    made.boot(0, 1, 2)
    made.create_topic("events", ids(0, 1, 2), ids(1, 2, 0), ids(2, 0, 1))
    made.create_topic("orders", ids(0, 1, 2))
    return made


DRIVER = driver()


def page(
    *,
    topics: tuple[str, ...] = (),
    cursor: messages.TopicCursor | None = None,
    asked: int = 100,
    limit: int = 100,
    hidden: Iterable[str] = (),
) -> tuple[list[tuple[str, int]], messages.TopicCursor | None]:
    """Returns the partitions of a page by topic, and where the next one begins."""
    request = messages.DescribeTopicPartitionsRequest(topics=topics, cursor=cursor, response_partition_limit=asked)
    response = describe_topic_partitions(DRIVER.image, request, partition_limit=limit, unauthorized=frozenset(hidden))
    return [(each.name, len(each.partitions)) for each in response.topics], response.next_cursor


def test_no_topics_are_all_of_them() -> None:
    assert page() == ([("events", 3), ("orders", 1)], None)
    assert page(topics=("orders",)) == ([("orders", 1)], None)


@pytest.mark.parametrize(("asked", "limit"), [(2, 100), (100, 2)])
def test_a_page_ends_at_the_smaller_limit_and_names_the_next_partition(asked: int, limit: int) -> None:
    assert page(asked=asked, limit=limit) == ([("events", 2)], messages.TopicCursor(topic="events", partition=2))


def test_a_page_begins_at_its_cursor_by_the_metadata_of_its_own_time() -> None:
    assert page(cursor=messages.TopicCursor(topic="events", partition=2)) == ([("events", 1), ("orders", 1)], None)
    assert page(cursor=messages.TopicCursor(topic="former", partition=2)) == ([("orders", 1)], None)


def test_a_topic_that_the_asker_may_not_see_is_hidden_or_refused() -> None:
    assert page(hidden=("events",)) == ([("orders", 1)], None)
    request = messages.DescribeTopicPartitionsRequest(topics=("events",))
    refused = describe_topic_partitions(
        DRIVER.image, request, partition_limit=100, unauthorized=frozenset({"events"})
    ).topics
    assert [(each.error, each.partitions) for each in refused] == [(ErrorCode.TOPIC_AUTHORIZATION_FAILED, ())]


def test_eligible_replicas_and_those_that_were_are_shown() -> None:
    made = driver()
    made.alter(0, (0,))
    request = messages.DescribeTopicPartitionsRequest(topics=("orders",))
    described = describe_topic_partitions(made.image, request, partition_limit=100).topics[0].partitions[0]
    assert (described.isr, described.elr, described.last_known_elr) == (ids(0), ids(1, 2), ())


def test_a_leader_that_recovers_is_shown() -> None:
    made = driver()
    name = TopicPartition("orders", 0)
    recovering = LeaderRecoveryState.RECOVERING
    made.image.partitions[name] = msgspec.structs.replace(made.image.partitions[name], leader_recovery_state=recovering)
    request = messages.DescribeTopicPartitionsRequest(topics=("orders",))
    described = describe_topic_partitions(made.image, request, partition_limit=100).topics[0].partitions[0]
    assert described.leader_recovery_state is recovering
