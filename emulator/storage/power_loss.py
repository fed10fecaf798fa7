"""Power loss on real files: the harness changes a node's directories after SIGKILL and before the restart.

The node must be dead. The sync ledger has what is durable, the disk what is present; ``plan_power_loss`` draws, and the
plan is executed by moving files. Afterwards everything that is left counts as durable, in the same ledger, as if read
back from a disk. The ledger's folder and everything outside the data directories stay unchanged.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random

import msgspec

from laststand.emulator.core.disk import DiskModel, ExactLoss, Keep
from laststand.emulator.core.errors import StorageError
from laststand.emulator.core.types import Offset
from laststand.emulator.storage.batch_scan import BatchValidation, BytesFile, scan_batches
from laststand.emulator.storage.power_loss_plan import (
    ByteLoss,
    ContentSource,
    FileView,
    NameLoss,
    PowerLossPlan,
    SurvivingContent,
    VolumeView,
    plan_power_loss,
)
from laststand.emulator.storage.segment import LOG_SUFFIX
from laststand.emulator.storage.sync_ledger import KeptBytes, SyncLedger


class PowerLossReport(msgspec.Struct, frozen=True, kw_only=True):
    """The effect of a power loss, every drawn choice included; fit for ``plan.yaml`` by ``msgspec.to_builtins``."""

    keep: Keep
    seed: int
    lost_names: tuple[NameLoss, ...]
    lost_bytes: tuple[ByteLoss, ...]

    @property
    def has_losses(self) -> bool:
        return bool(self.lost_names or self.lost_bytes)


def lose_power(
    data_directories: Sequence[str],
    *,
    ledger_folder: str,
    keep: Keep,
    seed: int,
    disk: DiskModel = DiskModel.POSIX,
    exact: ExactLoss | None = None,
) -> PowerLossReport:
    """Takes from a dead node's directories what its sync ledger does not cover.

    Args:
        data_directories: all log directories and the controller's metadata log, absolute paths.
        ledger_folder: the node's ledger, outside all of them.
        keep: shape of the loss.
        seed: of all random choices.
        disk: the file system that is played.
        exact: the loss, if it is not random.

    Raises:
        StorageError: a directory cannot be read or changed.
    """
    ledger = SyncLedger(ledger_folder, disk=disk)
    try:
        volume = _read_volume(data_directories, ledger)
        plan = plan_power_loss(
            volume.view, keep=keep, random=Random(seed), batch_starts=volume.batch_starts, disk=disk, exact=exact
        )
        _Execution(volume, ledger).run(plan)
    except OSError as error:
        raise StorageError(path=ledger_folder, reason=str(error)) from error
    finally:
        ledger.close()
    return PowerLossReport(keep=keep, seed=seed, lost_names=plan.lost_names, lost_bytes=plan.lost_bytes)


def count_as_durable(data_directory: str, *, ledger_folder: str) -> None:
    """Begins a ledger with everything that is in a directory, which was created before the node's first start.

    Raises:
        StorageError: the directory cannot be read, or the ledger not be written.
    """
    ledger = SyncLedger(ledger_folder)
    try:
        view = _read_volume([data_directory], ledger).view
        ledger.reset(names=view.present, lengths={inode: file.length for inode, file in view.files.items()})
    except OSError as error:
        raise StorageError(path=ledger_folder, reason=str(error)) from error
    finally:
        ledger.close()


def scan_log_end(partition_directory: str) -> Offset:
    """Returns where a recovery would end a log now, without changing it; 0 without segments.

    The result is the offset after the last intact batch of the first segment that is damaged or does not reach the next
    one, or of the newest segment. The recovery point is ignored, everything is read.

    Raises:
        StorageError: a file cannot be read.
    """
    log_end: int | None = None
    try:
        for path in sorted(Path(partition_directory).glob(f"*{LOG_SUFFIX}")):
            base = int(path.stem)
            if log_end is not None and base > log_end:
                break
            content = path.read_bytes()
            scan = scan_batches(BytesFile(content), check=BatchValidation.CRC)
            log_end = scan.batches[-1].next_offset if scan.batches else max(log_end or 0, base)
            if scan.valid_bytes < len(content):
                break
    except OSError as error:
        raise StorageError(path=partition_directory, reason=str(error)) from error
    return Offset(log_end or 0)


class _Volume:
    def __init__(self, view: VolumeView, paths: Mapping[int, str]) -> None:
        self.view = view
        self.paths = paths
        """The present path of each file and directory; in the ledger's folder if it was unlinked."""

    def batch_starts(self, inode: int) -> Sequence[int]:
        path = self.paths[inode]
        with open(path, "rb") as file:
            scan = scan_batches(BytesFile(file.read()), check=BatchValidation.HEADERS)
        return scan.positions


def _read_volume(data_directories: Sequence[str], ledger: SyncLedger) -> _Volume:
    present: dict[int, dict[str, int]] = {}
    lengths: dict[int, int] = {}
    paths: dict[int, str] = {}
    roots: dict[str, int] = {}

    def walk(path: str) -> int:
        inode = os.stat(path).st_ino
        paths[inode] = path
        present[inode] = {}
        with os.scandir(path) as entries:
            for entry in sorted(entries, key=lambda found: found.name):
                if entry.is_dir(follow_symlinks=False):
                    present[inode][entry.name] = walk(entry.path)
                else:
                    present[inode][entry.name] = entry.inode()
                    paths[entry.inode()] = entry.path
                    lengths[entry.inode()] = _length(entry)
        return inode

    for root in data_directories:
        roots[root] = walk(root)
    with os.scandir(ledger.kept_folder) as kept:
        for entry in kept:
            if entry.name.startswith("cut-") or entry.inode() in paths:
                continue
            paths[entry.inode()] = entry.path
            if entry.is_dir(follow_symlinks=False):
                present[entry.inode()] = {}
            else:
                lengths[entry.inode()] = _length(entry)

    files: dict[int, FileView] = {}
    for inode, length in lengths.items():
        covered = ledger.coverage.get(inode)
        if covered is None:
            files[inode] = FileView(length=length, intact_length=0, durable_length=0)
        else:
            files[inode] = FileView(
                length=length,
                intact_length=covered.intact_length,
                durable_length=covered.durable_length,
                overwritten=tuple((each.start, each.end) for each in covered.overwritten),
            )
    durable = {
        directory: {name: inode for name, inode in ledger.names.get(directory, {}).items() if inode in paths}
        for directory in present
    }
    return _Volume(VolumeView(roots=roots, present=present, durable=durable, files=files), paths)


def _length(entry: os.DirEntry[str]) -> int:
    """Returns the bytes that a power loss may take from a file; a symbolic link, a FIFO or a socket has none."""
    return entry.stat().st_size if entry.is_file(follow_symlinks=False) else 0


class _Execution:
    """Carries a plan out: moves files aside, changes their content, and moves them to their places."""

    def __init__(self, volume: _Volume, ledger: SyncLedger) -> None:
        self._volume = volume
        self._ledger = ledger
        self._staging = f"{ledger.folder}/staging"

    def run(self, plan: PowerLossPlan) -> None:
        os.makedirs(self._staging, exist_ok=True)
        self._set_aside(plan)
        lengths: dict[int, int] = {}
        for root, directory in self._volume.view.roots.items():
            self._place(root, directory, plan)
        for inode, content in plan.contents.items():
            lengths[inode] = content.length
        self._ledger.reset(names=plan.names, lengths=lengths)
        _remove_tree(self._staging)

    def _set_aside(self, plan: PowerLossPlan) -> None:
        view = self._volume.view
        deepest_first = sorted(view.present, key=lambda inode: self._volume.paths[inode].count("/"), reverse=True)
        for directory in deepest_first:
            after = plan.names.get(directory, {})
            for name, inode in view.present[directory].items():
                if after.get(name) != inode:
                    os.rename(f"{self._volume.paths[directory]}/{name}", f"{self._staging}/{inode}")

    def _place(self, path: str, directory: int, plan: PowerLossPlan) -> None:
        for name, inode in plan.names[directory].items():
            target = f"{path}/{name}"
            if not os.path.lexists(target):
                staged = f"{self._staging}/{inode}"
                os.rename(staged if os.path.lexists(staged) else self._ledger.kept_path(inode), target)
            if inode in plan.contents:
                self._shape(target, inode, plan.contents[inode])
            else:
                self._place(target, inode, plan)

    def _shape(self, path: str, inode: int, content: SurvivingContent) -> None:
        whole = SurvivingContent(source=ContentSource.PRESENT, length=self._volume.view.files[inode].length)
        if content == whole:
            return
        with open(path, "r+b") as file:
            if content.source is ContentSource.DURABLE:
                for piece in self._ledger.coverage[inode].pieces:
                    file.seek(piece.start)
                    file.write(self._kept(piece, piece.start, piece.end))
            file.truncate(content.length)
            for start, end in content.zeroed:
                file.seek(start)
                file.write(bytes(end - start))
            for write in reversed(content.undone):
                before = self._ledger.coverage[inode].overwritten[write.number].before
                file.seek(write.start)
                file.write(bytes(write.end - write.start) if before is None else self._kept(before, *write[1:]))

    def _kept(self, kept: KeptBytes, start: int, end: int) -> bytes:
        with open(self._ledger.cut_path(kept), "rb") as file:
            file.seek(start - kept.start)
            return file.read(end - start)


def _remove_tree(path: str) -> None:
    for folder, _, files in os.walk(path, topdown=False):
        for name in files:
            os.unlink(f"{folder}/{name}")
        os.rmdir(folder)
