"""Work on a node's files, done by this process or by one that runs where the files are.

Each piece of work is a value that can be sent to ``containers/volume_program.py`` if this process cannot see the files.
"""

import shutil
from pathlib import Path
from typing import Protocol, TypeAlias, TypeVar

import msgspec

from laststand.emulator.cluster.layout import data_directory, ledger_directory
from laststand.emulator.core.disk import DiskModel, DiskOperation, ExactLoss, Keep
from laststand.emulator.core.types import NodeId, Offset, TopicPartition
from laststand.emulator.storage.bit_flip import FlippedBit, flip_last_batch
from laststand.emulator.storage.disk_faults import arm, read_faults, seen_generation
from laststand.emulator.storage.power_loss import PowerLossReport, lose_power, scan_log_end
from laststand.emulator.storage.replica_view import ReplicaView, view_replica

ResultT = TypeVar("ResultT")
ResultT_co = TypeVar("ResultT_co", covariant=True)


class FileWork(Protocol[ResultT_co]):
    """Work on the files of one node."""

    def perform(self, run: Path) -> ResultT_co:
        """Does the work, in this process.

        Args:
            run: the run's directory.

        Raises:
            StorageError: a file cannot be read or changed.
        """
        ...


class NodeFiles(Protocol):
    """The files of a run's nodes. All methods block."""

    def perform(self, work: FileWork[ResultT]) -> ResultT:
        """Does a piece of work on the files.

        Raises:
            StorageError: a file cannot be read or changed.
        """
        ...

    def catch_up(self) -> None:
        """Returns once the run's ``events`` and ``history`` have everything that nodes have written so far.

        Raises:
            StorageError: a file cannot be read.
        """


class LocalFiles:
    """``NodeFiles`` that this process sees.

    Args:
        run: the run's directory.
    """

    def __init__(self, run: Path) -> None:
        self._run = run

    def perform(self, work: FileWork[ResultT]) -> ResultT:
        """Does the work in this process."""
        return work.perform(self._run)

    def catch_up(self) -> None:
        """Nodes write into these very folders."""


class _Work(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag=True):
    """Base of all work.

    Attributes:
        node_id: the node whose files are changed.
    """

    node_id: NodeId


class PowerTaken(msgspec.Struct, frozen=True, kw_only=True):
    """The effect of a power loss on one node.

    Attributes:
        report: of its files.
        log_ends: the log end offset of each partition on the node, before and after.
    """

    report: PowerLossReport
    log_ends: tuple[tuple[TopicPartition, Offset, Offset], ...]


class LosePower(_Work, frozen=True, kw_only=True):
    """Take from a dead node what its sync ledger does not cover.

    Attributes:
        keep: shape of the loss.
        seed: of all random choices.
        disk: the file system.
        exact: the exact loss, if nothing is left to chance.
        partitions: that there are.
    """

    keep: Keep
    seed: int
    disk: DiskModel = DiskModel.POSIX
    exact: ExactLoss | None
    partitions: tuple[TopicPartition, ...]

    def perform(self, run: Path) -> PowerTaken:
        """Takes unsynced data from a dead node's files; returns what was taken."""
        data = data_directory(run, self.node_id)
        before = {each: _log_end(data, each) for each in self.partitions if (data / str(each)).is_dir()}
        report = lose_power(
            [str(data)],
            ledger_folder=str(ledger_directory(run, self.node_id)),
            keep=self.keep,
            seed=self.seed,
            disk=self.disk,
            exact=self.exact,
        )
        ends = tuple((each, end, _log_end(data, each)) for each, end in sorted(before.items()))
        return PowerTaken(report=report, log_ends=ends)


class FlipBit(_Work, frozen=True, kw_only=True):
    """Damage the last batch of a partition, if there is one."""

    partition: TopicPartition

    def perform(self, run: Path) -> FlippedBit | None:
        """Flips a bit of the batch; returns the flipped bit."""
        return flip_last_batch(data_directory(run, self.node_id) / str(self.partition))


class EmptyDisk(_Work, frozen=True, kw_only=True):
    """Remove all that a dead node stored, including its sync ledger."""

    def perform(self, run: Path) -> bool:
        """Removes the files; returns whether there were any."""
        places = data_directory(run, self.node_id), ledger_directory(run, self.node_id)
        gone = [path for path in places if path.is_dir()]
        for path in gone:
            shutil.rmtree(path)
        return bool(gone)


class DiskChange(msgspec.Struct, frozen=True, kw_only=True):
    """A change of a disk's faults (``DiskFaults``); the rest stays."""

    sync_delay_ms: int | msgspec.UnsetType = msgspec.UNSET
    are_syncs_lost: bool | msgspec.UnsetType = msgspec.UNSET
    failing: DiskOperation | msgspec.UnsetType | None = msgspec.UNSET
    at: int | msgspec.UnsetType = msgspec.UNSET
    bytes_left: int | msgspec.UnsetType | None = msgspec.UNSET


class ArmDisk(_Work, frozen=True, kw_only=True):
    """Change the faults of a node's disk; it looks at them when it syncs, or is notified."""

    change: DiskChange

    def perform(self, run: Path) -> bool:
        """Changes the disk's faults; returns whether they are different now."""
        ledger = ledger_directory(run, self.node_id)
        armed = read_faults(ledger)
        wanted = {name: getattr(self.change, name) for name in self.change.__struct_fields__}
        changes = {name: value for name, value in wanted.items() if value is not msgspec.UNSET}
        if all(getattr(armed, name) == value for name, value in changes.items()):
            return False
        arm(ledger, **changes)
        return True


class FindWhetherFull(_Work, frozen=True, kw_only=True):
    """Find out whether a node's disk is full, or has room for this many bytes only."""

    def perform(self, run: Path) -> bool:
        """Returns whether the disk is full."""
        return read_faults(ledger_directory(run, self.node_id)).bytes_left is not None


class LookAtDisk(_Work, frozen=True, kw_only=True):
    """Find out whether a node has felt the faults of its disk."""

    def perform(self, run: Path) -> bool:
        """Returns whether a fault has acted on the node."""
        ledger = ledger_directory(run, self.node_id)
        return seen_generation(ledger) >= read_faults(ledger).generation


class ListLogs(_Work, frozen=True, kw_only=True):
    """List the directories in a node's log directory, such as ``orders-0``."""

    def perform(self, run: Path) -> frozenset[str]:
        """Returns the names of the directories."""
        data = data_directory(run, self.node_id)
        return frozenset(each.name for each in data.iterdir() if each.is_dir()) if data.is_dir() else frozenset()


class FindLogEnd(_Work, frozen=True, kw_only=True):
    """Find out where a log would end if it were recovered now."""

    partition: TopicPartition

    def perform(self, run: Path) -> Offset:
        """Returns the log end offset; 0 if the node has no log of the partition."""
        return _log_end(data_directory(run, self.node_id), self.partition)


class ViewReplica(_Work, frozen=True, kw_only=True):
    """Read the state of a replica's log."""

    partition: TopicPartition

    def perform(self, run: Path) -> ReplicaView | None:
        """Returns the replica's files; ``None`` if the node has no log of the partition."""
        return view_replica(data_directory(run, self.node_id), ledger_directory(run, self.node_id), self.partition)


AnyFileWork: TypeAlias = (
    LosePower | FlipBit | EmptyDisk | ArmDisk | FindWhetherFull | LookAtDisk | ListLogs | FindLogEnd | ViewReplica
)
"""All that can be sent."""


def _log_end(data: Path, partition: TopicPartition) -> Offset:
    return scan_log_end(str(data / str(partition)))
