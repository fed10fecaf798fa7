"""Names that a topic may have (Kafka's ``Topic.validate`` and ``ReplicationControlManager.validateNewTopicNames``)."""

import pytest

from laststand.emulator.core.errors import ErrorCode
from tests.unit.core.controller.controller_driver import ids
from tests.unit.core.controller.test_controller import driver


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "ä", "x" * 250])
def test_a_name_that_is_no_directory_is_refused(name: str) -> None:
    made = driver()
    made.boot(0)
    (result,) = made.create_topic(name, ids(0)).topics
    assert result.error is ErrorCode.INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize("name", ["...", "a", "x" * 249, "A.b_c-9"])
def test_others_are_taken(name: str) -> None:
    made = driver()
    made.boot(0)
    (result,) = made.create_topic(name, ids(0)).topics
    assert result.error is ErrorCode.NONE


@pytest.mark.parametrize(
    ("first", "second", "error"),
    [
        ("a.b", "a_b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("a_b", "a.b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("a.b_c", "a_b.c", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("a.b", "a-b", ErrorCode.NONE),
        ("a_b", "a_c", ErrorCode.NONE),
    ],
)
def test_names_that_differ_by_dot_and_underscore_alone_collide(first: str, second: str, error: ErrorCode) -> None:
    made = driver()
    made.boot(0)
    made.create_topic(first, ids(0))
    (result,) = made.create_topic(second, ids(0)).topics
    assert result.error is error
