"""The vector of KIP-550's own terms: a request that lists all replicas, and what a broker then schedules for deletion.

In KRaft the list of all replicas is the image that a broker has caught up with when it opens its logs; so the request
becomes that image, and a request that does not contain all replicas becomes none.
"""

from collections.abc import Mapping
from typing import Final

from emulator.core.broker.stray import stray_reason
from emulator.core.broker.stray_cleanup import StrayLogs
from emulator.core.broker.turn import Turn
from emulator.core.effects import DeleteStrayLog
from emulator.core.image import MetadataImage
from emulator.core.inputs import LoadedLog
from emulator.core.records import PartitionRecord, TopicRecord
from emulator.core.types import CauseId, Offset, TopicId, TopicPartition
from tests.conformance.broker_node_kinds import partition_of
from tests.conformance.broker_world import broker_id, configured
from tests.conformance.harness import Handler, Vector, outcome_mismatches


def run_stray_kip550(vector: Vector) -> list[str]:
    """Which logs on disk are deleted, once their grace is over."""
    strays = StrayLogs(configured(vector.config, vector.switches))
    for step in vector.steps:
        if step["op"] != "leader_and_isr":
            return [f"operation {step['op']} is not known"]
        if step["contains_all_replicas"]:
            _reconcile(strays, on_disk=vector.before["on_disk"], image=_image(vector.before["request"]))
    due_ms = strays.timers.earliest_ms
    turn = Turn(now_ms=due_ms or 0, cause_id=CauseId("vector"))
    strays.handle_timer(turn)
    deleted = [str(effect.partition) for effect in turn.effects() if isinstance(effect, DeleteStrayLog)]
    return outcome_mismatches(vector, {"scheduled_for_deletion": deleted}, sets=("scheduled_for_deletion",))


def _reconcile(strays: StrayLogs, *, on_disk: list[str], image: MetadataImage) -> None:
    turn = Turn(now_ms=0, cause_id=CauseId("vector"))
    for name in on_disk:
        loaded = _loaded(partition_of(name))
        reason = stray_reason(loaded, image, broker_id("L"))
        if reason is not None:
            strays.put_aside(turn, loaded, reason)


def _image(names: list[str]) -> MetadataImage:
    image = MetadataImage()
    for name in names:
        topic, partition = partition_of(name)
        if topic not in image.topics:
            image.replay(TopicRecord(name=topic, topic_id=_topic_id(topic)), offset=image.next_offset)
        own = broker_id("L")
        record = PartitionRecord(
            topic_id=_topic_id(topic), partition=partition, replicas=(own,), isr=(own,), leader=own
        )
        image.replay(record, offset=image.next_offset)
    return image


def _topic_id(topic: str) -> TopicId:
    return TopicId(f"id-of-{topic}")


def _loaded(partition: TopicPartition) -> LoadedLog:
    none = Offset(0)
    return LoadedLog(
        partition=partition,
        topic_id=_topic_id(partition.topic),
        is_clean=True,
        batches=(),
        log_start_offset=none,
        log_end_offset=none,
        epochs=(),
        log_start_checkpoint=none,
        high_watermark_checkpoint=none,
        recovery_point=none,
    )


KINDS: Final[Mapping[str, Handler]] = {"stray_kip550": run_stray_kip550}
