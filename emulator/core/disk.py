"""A disk: its file system, the operations that can fail, and which unsynced changes survive a power loss.

A file system decides which changes of other files the sync of one file makes durable.

``ext4`` and ``xfs`` have one journal, in the order of the changes. A sync that has a change to commit also
commits every earlier truncation and name change of any file. So one point of the journal separates durable changes from
changes that may be undone, for truncations and name changes alike.

``btrfs`` writes only the synced file, to a separate log, and all other changes with its next transaction, for which no
sync has to wait. ``posix`` stands for all file systems with no stronger guarantee. With either, any subset of the
unsynced changes may be lost. With both, a synced file keeps its own name, although POSIX does not guarantee that.

Sources: docs/kafka.md, "Power loss".
"""

from enum import Enum

import msgspec


class DiskModel(Enum):
    """A file system, with its default options for creation and mounting."""

    POSIX = "posix"
    BTRFS = "btrfs"
    EXT4 = "ext4"
    XFS = "xfs"

    @property
    def has_ordered_journal(self) -> bool:
        """A sync makes every earlier change durable, truncations and names of other files included."""
        return self in (DiskModel.EXT4, DiskModel.XFS)


class DiskOperation(Enum):
    """The disk operation that a fault concerns."""

    WRITE = "write"
    SYNC = "sync"
    READ = "read"


class Keep(Enum):
    """The part of unsynced bytes that survives."""

    NONE = "none"
    PREFIX = "prefix"
    TORN = "torn"
    PAGES = "pages"


class TruncationFate(Enum):
    """The outcome of a truncation that was not synced."""

    KEPT = "kept"
    UNDONE = "undone"


class NamesFate(Enum):
    """The outcome of changes of names that were not synced."""

    KEPT = "kept"
    UNDONE = "undone"


class ExactLoss(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a power loss, with nothing left to chance.

    Attributes:
        kept: number of unsynced batches of each log that survive ``prefix`` and ``pages``; at least one is always lost.
        truncation: the outcome of unsynced truncations.
        names: the outcome of unsynced name changes.
    """

    kept: int
    truncation: TruncationFate
    names: NamesFate = NamesFate.UNDONE
