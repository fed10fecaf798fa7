"""The range assignor and its bytes, as Kafka's clients have them."""

from laststand.emulator.core.client.range_assignor import (
    Subscriber,
    assign_ranges,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from laststand.emulator.core.types import TopicPartition

ORDERS = frozenset({"orders"})


def partitions(topic: str, *numbers: int) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for number in numbers]


def test_the_first_members_have_one_partition_more() -> None:
    members = [Subscriber(name, None, ORDERS) for name in ("c", "a", "b")]
    assert assign_ranges(members, {"orders": 5}) == {
        "a": partitions("orders", 0, 1),
        "b": partitions("orders", 2, 3),
        "c": partitions("orders", 4),
    }


def test_each_topic_is_assigned_among_its_subscribers() -> None:
    members = [Subscriber("a", None, ORDERS), Subscriber("b", None, ORDERS | {"refunds"})]
    assert assign_ranges(members, {"orders": 1, "refunds": 2}) == {
        "a": partitions("orders", 0),
        "b": partitions("refunds", 0, 1),
    }


def test_static_members_come_first_by_their_instance_ids() -> None:
    members = [Subscriber("a", None, ORDERS), Subscriber("z", "1", ORDERS), Subscriber("y", "2", ORDERS)]
    assert assign_ranges(members, {"orders": 2}) == {
        "z": partitions("orders", 0),
        "y": partitions("orders", 1),
        "a": [],
    }


def test_an_unknown_topic_has_no_partitions() -> None:
    assert assign_ranges([Subscriber("a", None, ORDERS)], {}) == {"a": []}


def test_subscriptions_are_in_kafkas_form() -> None:
    assert encode_subscription(("orders",)) == bytes.fromhex("0000 00000001 0006") + b"orders" + b"\xff" * 4
    assert decode_subscription(encode_subscription(("orders", "refunds"))) == {"orders", "refunds"}


def test_what_a_later_version_adds_is_passed_over() -> None:
    assert decode_subscription(encode_subscription(("orders",)) + bytes(9)) == ORDERS


def test_another_protocol_is_a_subscription_to_nothing() -> None:
    assert decode_subscription(b"\x00") == decode_subscription(bytes.fromhex("0000 00000001 0001 ff")) == frozenset()


def test_assignments_are_in_kafkas_form() -> None:
    given = (*partitions("orders", 2, 5), *partitions("refunds", 0))
    data = encode_assignment(given)
    assert data.startswith(
        bytes.fromhex("0000 00000002 0006") + b"orders" + bytes.fromhex("00000002 00000002 00000005")
    )
    assert decode_assignment(data) == given
    assert decode_assignment(b"") == ()
