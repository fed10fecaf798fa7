"""The files of a run that a verdict rests on: the program that played the run records their digests at its end.

::

    cluster.yaml  scenario.yaml
    events/*  history.*  history/*          lines: what was written down
    nodes/<id>/data/                        what was stored
        meta.properties  .kafka_cleanshutdown  log-start-offset-checkpoint
        <topic>-<partition>/partition.metadata, and its segments
        __cluster_metadata-0/00000000000000000000.log
        version-2/log.*                     of a ZooKeeper server

Indexes, snapshots, and checkpoints that only a broker's next start reads are not among them: no verdict depends on
them. ``laststand.emulator.verification`` has its own list.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from laststand.emulator.core import events
from laststand.emulator.core.types import CauseId
from laststand.emulator.storage.checkpoints import LOG_START_OFFSET_CHECKPOINT
from laststand.emulator.storage.clean_shutdown import CLEAN_SHUTDOWN_FILE
from laststand.emulator.storage.file_digest import content_of, digest_of
from laststand.emulator.storage.line_file import line_files
from laststand.emulator.storage.meta_properties import META_PROPERTIES, PARTITION_METADATA

_DESCRIPTIONS: Final = ("cluster.yaml", "scenario.yaml")
_OF_DIRECTORIES: Final = (META_PROPERTIES, CLEAN_SHUTDOWN_FILE, LOG_START_OFFSET_CHECKPOINT)
_METADATA: Final = "__cluster_metadata"
_FIRST_SEGMENT: Final = f"{0:020}.log"
_ZOOKEEPERS: Final = "version-2"


def vouchers(run: Path, *, but_for: Path, cause_id: CauseId) -> Iterator[events.FileVouched]:
    """Yields the content of each of a run's files, once no process writes them any more.

    Args:
        run: the run's directory.
        but_for: the file of the process that vouches.
        cause_id: of the events.

    Raises:
        OSError: a file cannot be read.
    """
    for path in _files_of_lines(run):
        if path != but_for:
            lines, digest = content_of(path)
            yield events.FileVouched(cause_id=cause_id, file=str(path.relative_to(run)), lines=lines, digest=digest)
    for path in _other_files(run):
        name = str(path.relative_to(run))
        yield events.FileVouched(cause_id=cause_id, file=name, lines=None, digest=digest_of(path))


def _files_of_lines(run: Path) -> list[Path]:
    return sorted((*line_files(run / "events"), *line_files(run / "history"), *line_files(run, "history")))


def _other_files(run: Path) -> list[Path]:
    stored = (path for data in run.glob("nodes/*/data") for path in _of_log_directory(data))
    return sorted(path for path in (*(run / name for name in _DESCRIPTIONS), *stored) if path.is_file())


def _of_log_directory(data: Path) -> Iterator[Path]:
    yield from (data / name for name in _OF_DIRECTORIES)
    for directory in data.glob("*-*"):
        topic, _, number = directory.name.rpartition("-")
        if directory.name == _ZOOKEEPERS:
            yield from directory.glob("log.*")
        elif topic == _METADATA:
            yield directory / _FIRST_SEGMENT
        elif topic and number.isdigit():
            yield directory / PARTITION_METADATA
            yield from directory.glob("[0-9]*.log")
