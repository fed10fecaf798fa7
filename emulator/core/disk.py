"""A disk: its file system, the operations that can fail, and what a power loss leaves of changes that were not synced.

A file system decides what a sync of one file makes durable of changes made elsewhere.

``ext4`` and ``xfs`` have one journal, in the order of the changes. A sync that has anything to commit commits with it
every truncation and every change of a name that came before, of whatever file. So there is one line between what is
durable and what may come undone, and both sorts of changes lie on the same side of it.

``btrfs`` writes the synced file alone to a log of its own, and everything else only with the next transaction, which
no sync need wait for. ``posix`` stands for all that promise no more than that. Either may forget any change that was
not itself synced, one and not another. Both leave a synced file its own name, although POSIX does not promise even
that.

Sources: docs/kafka.md, "Power loss".
"""

from enum import Enum

import msgspec


class DiskModel(Enum):
    """A file system, with the options that it is made and mounted with if nobody says otherwise."""

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
        kept: unsynced batches of each log that survive ``prefix`` and ``pages``; at least one is always lost.
        truncation: what becomes of those that were not synced.
        names: likewise.
    """

    kept: int
    truncation: TruncationFate
    names: NamesFate = NamesFate.UNDONE
