"""Notifies the controller of ISRs that a leader wrote itself (``ReplicaManager.maybePropagateIsrChanges``).

Changes are collected and written to one sequence node. A check every 2.5 s writes them if the last change is more than
5 s old, or the last notification more than 60 s. Until then the controller, and so every client, knows the old ISR.
"""

from typing import Final

from laststand.emulator.core.types import TopicPartition
from laststand.emulator.core.zookeeper import operations
from laststand.emulator.core.zookeeper.nodes import paths
from laststand.emulator.core.zookeeper.nodes.small_nodes import encode_isr_notification

LOOK_INTERVAL_MS: Final = 2_500
LINGER_MS: Final = 5_000
MAX_DELAY_MS: Final = 60_000


class IsrChangeNotifier:
    """The changes that the controller has not been notified of."""

    def __init__(self, *, now_ms: int) -> None:
        self._changed: dict[TopicPartition, None] = {}
        self._last_change_ms = now_ms
        self._last_sent_ms = now_ms

    def note(self, name: TopicPartition, *, now_ms: int) -> None:
        """Collects a change."""
        self._changed[name] = None
        self._last_change_ms = now_ms

    def is_due(self, *, now_ms: int) -> bool:
        """Returns whether the collected changes are to be written now."""
        if not self._changed:
            return False
        is_quiet = self._last_change_ms + LINGER_MS < now_ms
        return is_quiet or self._last_sent_ms + MAX_DELAY_MS < now_ms

    def pop_changes(self, *, now_ms: int) -> frozenset[TopicPartition]:
        """Removes and returns the collected changes."""
        taken = frozenset(self._changed)
        self._changed = {}
        self._last_sent_ms = now_ms
        return taken


def notify(changed: frozenset[TopicPartition]) -> operations.Program[None]:
    """Writes one notification node with all changes."""
    path = f"{paths.ISR_CHANGE_NOTIFICATIONS}/{paths.ISR_CHANGE_PREFIX}"
    yield (operations.Create(path=path, data=encode_isr_notification(changed), kind=operations.NodeKind.SEQUENTIAL),)
