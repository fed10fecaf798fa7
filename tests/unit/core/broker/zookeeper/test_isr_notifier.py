"""Times of a leader's notifications about ISRs that it wrote (Kafka's ``ReplicaManager.maybePropagateIsrChanges``)."""

import pytest

from laststand.emulator.core.broker.zookeeper.isr_notifier import LINGER_MS, MAX_DELAY_MS, IsrChangeNotifier, notify
from laststand.emulator.core.types import TopicPartition
from laststand.emulator.core.zookeeper import operations
from laststand.emulator.core.zookeeper.nodes import paths
from laststand.emulator.core.zookeeper.nodes.small_nodes import decode_isr_notification

STARTED_MS = 1_000
FIRST, SECOND = (TopicPartition("orders", number) for number in range(2))


def notifier() -> IsrChangeNotifier:
    return IsrChangeNotifier(now_ms=STARTED_MS)


def test_without_a_change_nothing_is_ever_due() -> None:
    assert not notifier().is_due(now_ms=STARTED_MS + 2 * MAX_DELAY_MS)


@pytest.mark.parametrize(("waited_ms", "is_due"), [(0, False), (LINGER_MS, False), (LINGER_MS + 1, True)])
def test_a_change_waits_until_no_other_has_come_for_a_while(waited_ms: int, *, is_due: bool) -> None:
    changes = notifier()
    changes.note(FIRST, now_ms=STARTED_MS + 10)
    changes.note(SECOND, now_ms=STARTED_MS + 100)
    assert changes.is_due(now_ms=STARTED_MS + 100 + waited_ms) is is_due


@pytest.mark.parametrize(("waited_ms", "is_due"), [(MAX_DELAY_MS, False), (MAX_DELAY_MS + 1, True)])
def test_changes_that_do_not_end_are_reported_a_minute_after_the_last_notification(
    waited_ms: int, *, is_due: bool
) -> None:
    changes = notifier()
    told_ms = STARTED_MS + 50
    changes.pop_changes(now_ms=told_ms)
    changes.note(FIRST, now_ms=told_ms + waited_ms)
    assert changes.is_due(now_ms=told_ms + waited_ms) is is_due


def test_the_first_notification_waits_a_minute_from_the_start_at_most() -> None:
    changes = notifier()
    changes.note(FIRST, now_ms=STARTED_MS + MAX_DELAY_MS)
    assert not changes.is_due(now_ms=STARTED_MS + MAX_DELAY_MS)
    assert changes.is_due(now_ms=STARTED_MS + MAX_DELAY_MS + 1)


def test_changes_are_reported_once_and_each_partition_once() -> None:
    changes = notifier()
    for name in (FIRST, SECOND, FIRST):
        changes.note(name, now_ms=STARTED_MS)
    assert changes.pop_changes(now_ms=STARTED_MS) == {FIRST, SECOND}
    assert changes.pop_changes(now_ms=STARTED_MS) == frozenset()
    assert not changes.is_due(now_ms=STARTED_MS + 2 * MAX_DELAY_MS)


def test_a_notification_is_one_sequence_node_that_names_all() -> None:
    (step,) = next(notify(frozenset({FIRST, SECOND})))
    assert isinstance(step, operations.Create)
    assert step.kind is operations.NodeKind.SEQUENTIAL
    assert step.path == f"{paths.ISR_CHANGE_NOTIFICATIONS}/{paths.ISR_CHANGE_PREFIX}"
    assert decode_isr_notification(step.data) == {FIRST, SECOND}
