"""Puts aside logs that were found at start and do not belong here (KIP-550).

They are put aside before this broker takes any role, so that a new topic of the same name gets a log of its own
(KAFKA-14616). The switch ``stray_cleanup`` decides the rest. By the KIP, their files are deleted after a grace period,
in which an operator may rescue them. Kafka leaves them on disk under another name. Before both, they stayed as they
were; retention never deleted from them, as they have no high watermark; and they became the data of the next partition
of that name to be assigned to the broker. Each process starts the grace periods again.
"""

from laststand.emulator.core import effects, events, inputs
from laststand.emulator.core.broker.replicas.config import BrokerConfig
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.timers import TimerQueue
from laststand.emulator.core.types import LogDeletedReason, StrayCleanup, StrayReason, TopicId, TopicPartition


class StrayLogs:
    """The strays of one broker.

    Attributes:
        timers: when each grace is over.
    """

    def __init__(self, config: BrokerConfig) -> None:
        self._rule = config.switches.stray_cleanup
        self._delay_ms = config.properties.stray_delete_delay_ms
        self._kept: dict[TopicPartition, inputs.LoadedLog] = {}
        self.timers: TimerQueue[inputs.StrayLog] = TimerQueue()

    def resume(self, turn: Turn, strays: tuple[inputs.StrayLog, ...]) -> None:
        """Continues with the strays that an earlier process put aside."""
        if self._rule is StrayCleanup.DELETE:
            for stray in strays:
                self.timers.set(stray, at_ms=turn.now_ms + self._delay_ms)

    def handle_stray(self, turn: Turn, loaded: inputs.LoadedLog, reason: StrayReason) -> None:
        """Handles a stray log as ``stray_cleanup`` demands."""
        topic, partition = loaded.partition
        topic_id = loaded.topic_id or TopicId("")
        turn.record(
            events.StrayDetected(
                cause_id=turn.cause_id,
                topic=topic,
                partition=partition,
                topic_id=topic_id,
                reason=reason,
                action=self._rule,
                log_end_offset=loaded.log_end_offset,
            )
        )
        if self._rule is StrayCleanup.OFF:
            self._kept[loaded.partition] = loaded
            return
        turn.write(effects.RenameStrayLog(partition=loaded.partition))
        turn.record(
            events.LogDeleted(
                cause_id=turn.cause_id,
                topic=topic,
                partition=partition,
                topic_id=topic_id,
                reason=LogDeletedReason.STRAY,
                log_end_offset=loaded.log_end_offset,
            )
        )
        self.resume(turn, (inputs.StrayLog(partition=loaded.partition, topic_id=loaded.topic_id),))

    def pop_retained(self, name: TopicPartition) -> inputs.LoadedLog | None:
        """Removes and returns the retained stray of that name, whichever topic its data belongs to."""
        return self._kept.pop(name, None)

    def handle_timer(self, turn: Turn) -> None:
        """Deletes strays whose grace period is over."""
        for stray in self.timers.pop_due(now_ms=turn.now_ms):
            turn.write(effects.DeleteStrayLog(partition=stray.partition, topic_id=stray.topic_id))
            turn.record(
                events.StrayDeleted(
                    cause_id=turn.cause_id,
                    topic=stray.partition.topic,
                    partition=stray.partition.partition,
                    topic_id=stray.topic_id or TopicId(""),
                )
            )
