"""Vectors of the kind ``stray_kraft``: logs found on disk that are not assigned here, and what becomes of them.

The logs are laid out in a log directory, judged and dealt with by the core as a broker does it when it opens its logs,
and what the core wants done is done to the directory, whose content is then looked at.
"""

from collections.abc import Mapping
from typing import Any, Final

from laststand.emulator.core import effects, inputs
from laststand.emulator.core.broker.kraft.stray import stray_reason
from laststand.emulator.core.broker.replicas.stray_cleanup import StrayLogs
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.types import BrokerId, CauseId, NodeId, TopicId, TopicPartition
from laststand.emulator.storage.filesystem import FileSystem
from laststand.emulator.storage.log_directory import LogDirectory
from laststand.emulator.storage.meta_properties import PARTITION_METADATA
from laststand.emulator.storage.partition_log import LogSettings
from tests.conformance.broker_node_kinds import fill_topics, partition_of
from tests.conformance.broker_world import configured
from tests.conformance.harness import Handler, Vector, outcome_mismatches
from tests.conformance.storage_kinds import one_batch
from tests.memory_filesystem import MemoryFileSystem

_ROOT: Final = "/logs"
_RENAMED: Final = "renamed with -stray suffix, kept on disk"


def run_stray_kraft(vector: Vector) -> list[str]:
    """Logs on disk that are strays, where their files are afterwards, and what a log of their name holds then."""
    filesystem = MemoryFileSystem()
    filesystem.make_directory(_ROOT)
    names = [_lay_out(filesystem, entry) for entry in vector.before["on_disk"]]
    image = MetadataImage()
    fill_topics(image, vector.before.get("image") or {})
    own = BrokerId(NodeId(vector.before["broker"]))
    cleanup = StrayLogs(configured(vector.config, vector.switches))
    directory = LogDirectory.open(filesystem, _ROOT)
    strays: list[TopicPartition] = []
    turn = Turn(now_ms=0, cause_id=CauseId("vector"))
    for loaded in directory.load_logs(lambda _: LogSettings()):
        reason = stray_reason(loaded, image, own)
        if reason is not None:
            cleanup.handle_stray(turn, loaded, reason)
            strays.append(loaded.partition)
    _execute(directory, turn)
    if (due_ms := cleanup.timers.earliest_ms) is not None:
        turn = Turn(now_ms=due_ms, cause_id=CauseId("vector"))
        cleanup.handle_timer(turn)
        _execute(directory, turn)
    actual: dict[str, Any] = {
        "stray": [str(name) for name in strays],
        "kept": [str(name) for name in names if name not in strays],
        "disposition": _disposition(filesystem, strays),
        "new_log_empty": _are_new_logs_empty(directory, image, strays),
    }
    return outcome_mismatches(vector, actual, sets=("stray", "kept"))


def _lay_out(filesystem: FileSystem, entry: str) -> TopicPartition:
    """Makes the log of an entry ``name-partition:topic id`` with one record; without an id it has no metadata file."""
    name, _, label = entry.partition(":")
    partition = partition_of(name)
    directory = LogDirectory.open(filesystem, _ROOT)
    log = directory.create_log(partition, TopicId(label or "none"), LogSettings())
    log.append(*one_batch(0, 0, 0))
    log.close()
    directory.close_logs(None)
    if not label:
        filesystem.unlink(f"{_ROOT}/{partition}/{PARTITION_METADATA}")
    return partition


def _execute(directory: LogDirectory, turn: Turn) -> None:
    for effect in turn.effects():
        match effect:
            case effects.RenameStrayLog():
                directory.rename_stray_log(effect.partition)
            case effects.DeleteStrayLog():
                directory.delete_strays(inputs.StrayLog(partition=effect.partition, topic_id=effect.topic_id))


def _disposition(filesystem: FileSystem, strays: list[TopicPartition]) -> str:
    names = filesystem.list_directory(_ROOT)
    if any(str(stray) in names for stray in strays):
        return "left where it was"
    renamed = [
        name
        for name in names
        for stray in strays
        if name.startswith(f"{stray}.") and name.endswith("-stray") and filesystem.list_directory(f"{_ROOT}/{name}")
    ]
    return _RENAMED if len(renamed) == len(strays) else "deleted"


def _are_new_logs_empty(directory: LogDirectory, image: MetadataImage, strays: list[TopicPartition]) -> bool:
    """Returns whether logs that are made now under the strays' names, for the topics of the image, hold nothing."""
    expected = [name for name in strays if name in image.partitions and name not in directory.logs]
    logs = [directory.create_log(name, image.partitions[name].topic_id, LogSettings()) for name in expected]
    return bool(logs) and all(log.log_end_offset == 0 for log in logs)


KINDS: Final[Mapping[str, Handler]] = {"stray_kraft": run_stray_kraft}
