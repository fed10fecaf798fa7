"""Records which bytes and names are durable: the kernel does not report it, and it decides what a power loss takes.

The ledger is a folder outside the data directories, on the same disk (hard links)::

    ledger.jsonl     one JSON array per line, appended with one write each
    kept/<inode>     hard link of an unlinked or replaced file, or a removed directory, that may still come back
    kept/cut-<n>     bytes of a truncation or of a write in place that may still be undone

    ["sync", inode, length, directory, name, seen]        the file is durable up to length, under that name
    ["wrote", inode, start, end, directory, name, seen]   bytes start..end are durable: the file is open with O_SYNC
    ["dir", directory, {name: inode}, seen]               exactly these names are durable in that directory
    ["cut", inode, size, end, n]                          a truncation to size; durable bytes size..end are in cut-<n>
    ["over", inode, start, end, n]                        a write over start..end, whose bytes are in cut-<n>
    ["name", inode, directory, name]                      a file or directory has got this name, or lost its own (null)
    ["forget", inode]                                     the inode is about to be freed and may be used again

Everything that the ledger does not cover is lost: a file without a line has no durable byte, a name without one no
durable name. So a process that is killed between an fsync and its line only loses more than necessary, and appends
write no line at all. Inodes identify files across renames; a covered inode is never freed without ``forget``, since the
link in ``kept`` holds it until then.

Lines of names matter only where a sync commits what came before it (``DiskModel.has_ordered_journal``): the lines among
the first ``seen`` bytes of the ledger, which is how long it was when the sync began. A file without a durable name of
its own is not kept when it is unlinked, and does not come back: its removal may always have been committed.
"""

import os
import stat
from collections.abc import Mapping
from typing import Final

import msgspec

from laststand.emulator.core.disk import DiskModel
from laststand.emulator.core.errors import StorageError

_LEDGER: Final = "ledger.jsonl"
_KEPT: Final = "kept"


def has_ledger(folder: str) -> bool:
    """Returns whether a ledger was begun in a folder."""
    return os.path.exists(f"{folder}/{_LEDGER}")


class KeptBytes(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes ``start..end`` of a file that a change, not durable yet, has cut off or overwritten.

    Attributes:
        start: first byte.
        end: byte after the last one.
        number: of the file with the bytes.
        position: of its line in the ledger, in bytes.
    """

    start: int
    end: int
    number: int
    position: int


class Overwritten(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes ``start..end`` of a file that were changed in place, which is not durable.

    Attributes:
        start: first byte.
        end: byte after the last one.
        before: has these bytes, and may have others; ``None`` if nothing was written before, which reads as zeros.
        position: of the line about the change in the ledger, in bytes.
    """

    start: int
    end: int
    before: KeptBytes | None
    position: int


class Coverage(msgspec.Struct, kw_only=True):
    """The durable part of one file.

    Attributes:
        intact_length: this prefix of the file's present content is durable, except for overwritten ranges.
        pieces: earlier durable content after that length, in ascending order and without gaps; empty unless a
            truncation is not durable.
        overwritten: in the order of the writes. Invariant: within the durable length.
    """

    intact_length: int
    pieces: list[KeptBytes] = msgspec.field(default_factory=list)
    overwritten: list[Overwritten] = msgspec.field(default_factory=list)

    @property
    def durable_length(self) -> int:
        """Length of the durable content. Invariant: intact_length <= durable_length."""
        return self.pieces[-1].end if self.pieces else self.intact_length


def durable_prefixes(folder: str) -> dict[int, int]:
    """Returns the length of each file's durable prefix, by inode, and leaves the ledger alone.

    For readers while the ledger's owner continues to write. A missing file has no durable byte.

    Raises:
        StorageError: the ledger cannot be read.
    """
    lengths: dict[int, int] = {}
    for line in _lines(folder):
        match msgspec.json.decode(line):
            case ["sync", int(inode), int(length), *_]:
                lengths[inode] = length
            case ["wrote", int(inode), int(), int(end), *_]:
                lengths[inode] = max(lengths.get(inode, 0), end)
            case ["cut", int(inode), int(size), *_]:
                lengths[inode] = min(lengths.get(inode, 0), size)
            case ["forget", int(inode)]:
                lengths.pop(inode, None)
    return lengths


def unnoted_names(directory: str, *, folder: str) -> frozenset[str]:
    """Returns the paths below a directory that differ from the ledger: their changes were not noted.

    For a ledger that began with everything that existed (``reset``). FIFOs, sockets and devices are left out.

    Raises:
        StorageError: the ledger cannot be read.
    """
    noted: dict[tuple[int, str], int] = {}
    place_of: dict[int, tuple[int, str]] = {}
    for line in _lines(folder):
        match msgspec.json.decode(line):
            case ["dir", int(parent), dict(listing), 0]:  # from the beginning: a sync has seen a line before it
                for name, inode in listing.items():
                    noted[parent, name] = inode
                    place_of[inode] = parent, name
            case ["name", int(inode), int(parent), str() | None as name]:
                before = place_of.pop(inode, None)
                if before is not None and noted.get(before) == inode:
                    del noted[before]
                if name is not None:
                    noted[parent, name] = inode
                    place_of[inode] = parent, name
    found: set[str] = set()
    for path, folders, files in os.walk(directory):
        parent = os.stat(path).st_ino
        for name in (*folders, *files):
            status = os.lstat(f"{path}/{name}")
            is_kept = stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode) or stat.S_ISLNK(status.st_mode)
            if noted.pop((parent, name), None) != status.st_ino and is_kept:
                found.add(f"{path}/{name}")
    return frozenset(found | {name for _, name in noted})


def _lines(folder: str) -> list[bytes]:
    """Returns the complete lines of a ledger that its owner may continue to write; none if it does not exist yet."""
    try:
        with open(f"{folder}/{_LEDGER}", "rb") as file:
            return file.read().split(b"\n")[:-1]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StorageError(path=folder, reason=str(error)) from error


class _NameChange(msgspec.Struct, frozen=True, kw_only=True):
    position: int
    inode: int
    directory: int
    name: str | None


class SyncLedger:
    """The durable state of a node's directories, in memory and on disk. Not thread-safe; its owner holds a lock."""

    def __init__(self, folder: str, *, disk: DiskModel = DiskModel.POSIX) -> None:
        """Opens the ledger in ``folder``, creating it where missing, and reads what earlier processes left.

        Args:
            folder: of its files.
            disk: the file system that decides what is durable; a ledger that is still written must use the default,
                because it keeps what may be needed later.

        Raises:
            StorageError: the folder cannot be used.
        """
        self.folder = folder
        self.kept_folder = f"{folder}/{_KEPT}"
        self.coverage: dict[int, Coverage] = {}
        self.names: dict[int, dict[str, int]] = {}
        self.length = 0
        """Bytes in the ledger now: what a sync that begins has ``seen`` of it."""
        self._name_of: dict[int, tuple[int, str]] = {}
        self._disk = disk
        self._name_changes: list[_NameChange] = []
        self._next_cut = 0
        self._encode = msgspec.json.Encoder().encode
        try:
            os.makedirs(self.kept_folder, exist_ok=True)
            self._descriptor = os.open(f"{folder}/{_LEDGER}", os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
            self._replay()
            self._sweep()
        except OSError as error:
            raise StorageError(path=folder, reason=str(error)) from error

    def close(self) -> None:
        """Closes the file; nothing may be recorded afterwards."""
        os.close(self._descriptor)

    # --- What is known --------------------------------------------------------------------------------------------

    def is_name_durable(self, *, inode: int, directory: int, name: str) -> bool:
        """Returns whether a power loss would leave that file under that name."""
        return self._name_of.get(inode) == (directory, name)

    def has_durable_name(self, inode: int) -> bool:
        """Returns whether a power loss could bring that file back, under any name."""
        return inode in self._name_of

    def kept_path(self, inode: int) -> str:
        """Returns the path at which an unlinked file or a removed directory waits."""
        return f"{self.kept_folder}/{inode}"

    def cut_path(self, piece: KeptBytes) -> str:
        """Returns the path for bytes that were cut off or overwritten."""
        return f"{self.kept_folder}/cut-{piece.number}"

    # --- What happened --------------------------------------------------------------------------------------------

    def record_sync(self, *, inode: int, length: int, directory: int, name: str | None, seen: int) -> None:
        """Notes that an fsync of a file returned; ``name`` is ``None`` for an unlinked file."""
        self._write(["sync", inode, length, directory, name, seen])
        self._drop_cuts(self._apply_sync(inode, length, directory, name, seen))

    def record_directory_sync(self, *, directory: int, listing: Mapping[str, int], seen: int) -> None:
        """Notes that an fsync of a directory returned; ``listing`` was taken before it."""
        self._write(["dir", directory, dict(listing), seen])
        for inode in self._apply_directory(directory, dict(listing)):
            self._free_kept(inode)

    def record_truncation(self, *, inode: int, size: int, read_cut: bytes) -> None:
        """Keeps the durable bytes that a truncation to ``size`` is about to cut; call it before the truncation.

        Args:
            inode: the file.
            size: length of the file after the truncation.
            read_cut: the file's bytes from ``size`` up to ``intact_length``.
        """
        covered = self.coverage.get(inode)
        if covered is None or size >= covered.intact_length:
            return
        piece = KeptBytes(start=size, end=covered.intact_length, number=self._next_cut, position=self.length)
        self._next_cut += 1
        descriptor = os.open(self.cut_path(piece), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        try:
            os.write(descriptor, read_cut)
        finally:
            os.close(descriptor)
        self._write(["cut", inode, size, piece.end, piece.number])
        self._apply_cut(inode, piece)

    def record_creation(self, inode: int, *, directory: int, name: str) -> None:
        """Notes a new file, so that records of an earlier file with its inode number are not applied to it."""
        if inode in self.coverage or inode in self._name_of:
            self.record_forget(inode)
        self.record_name(inode, directory=directory, name=name)

    def record_name(self, inode: int, *, directory: int, name: str) -> None:
        """Notes a new name of a file or directory, which is not durable yet."""
        self._write(["name", inode, directory, name])

    def record_no_name(self, inode: int) -> None:
        """Notes that a file or directory has lost its name, which may come back."""
        self._write(["name", inode, 0, None])

    def record_forget(self, inode: int) -> None:
        """Notes that nothing of an inode is durable any more; call it before the inode is freed."""
        self._write(["forget", inode])
        self._drop_cuts(self._apply_forget(inode))

    def reset(self, *, names: Mapping[int, Mapping[str, int]], lengths: Mapping[int, int]) -> None:
        """Starts again from a state in which everything that exists is durable (after a power loss).

        Args:
            names: content of every directory, by its inode.
            lengths: length of every file, by its inode.
        """
        self.coverage = {inode: Coverage(intact_length=length) for inode, length in lengths.items()}
        self.names = {directory: dict(listing) for directory, listing in names.items()}
        self._index_names()
        self._compact()
        os.close(self._descriptor)
        self._descriptor = os.open(f"{self.folder}/{_LEDGER}", os.O_RDWR | os.O_APPEND, 0o644)
        for entry in os.scandir(self.kept_folder):
            if entry.is_dir(follow_symlinks=False):
                os.rmdir(entry.path)
            else:
                os.unlink(entry.path)

    # --- State ----------------------------------------------------------------------------------------------------

    def _apply_sync(self, inode: int, length: int, directory: int, name: str | None, seen: int) -> list[KeptBytes]:
        covered = self.coverage.get(inode, Coverage(intact_length=0))
        later = [each for each in covered.overwritten if each.position >= seen and each.end <= length]
        self.coverage[inode] = Coverage(intact_length=length, overwritten=later)
        if name is not None:
            self._apply_name(inode, directory, name)
        return covered.pieces

    def _replay_overwritten(self, inode: int, before: KeptBytes) -> None:
        """Applies the part of a write in place that was durable before it."""
        covered = self.coverage.get(inode)
        if covered is not None and before.start < covered.intact_length:
            end = min(before.end, covered.intact_length)
            change = Overwritten(start=before.start, end=end, before=before, position=before.position)
            covered.overwritten.append(change)

    def _replay_synchronous_write(self, inode: int, start: int, end: int, position: int) -> None:
        """Makes one range of a file durable. Bytes that were appended before it without a sync may read as zeros."""
        covered = self.coverage.setdefault(inode, Coverage(intact_length=0))
        covered.overwritten = [
            msgspec.structs.replace(each, start=part_start, end=part_end)
            for each in covered.overwritten
            for part_start, part_end in ((each.start, min(each.end, start)), (max(each.start, end), each.end))
            if part_start < part_end
        ]
        if covered.intact_length < start:
            hole = Overwritten(start=covered.intact_length, end=start, before=None, position=position)
            covered.overwritten.append(hole)
        covered.intact_length = max(covered.intact_length, end)
        covered.pieces = []

    def _apply_name(self, inode: int, directory: int, name: str) -> None:
        if self._name_of.get(inode) == (directory, name):
            return
        self._remove_name(inode)
        listing = self.names.setdefault(directory, {})
        replaced = listing.get(name)
        if replaced is not None:
            self._name_of.pop(replaced, None)
        listing[name] = inode
        self._name_of[inode] = (directory, name)

    def _apply_directory(self, directory: int, listing: dict[str, int]) -> list[int]:
        before = self.names.get(directory, {})
        for inode in before.values():
            self._name_of.pop(inode, None)
        self.names[directory] = listing
        for name, inode in listing.items():
            if (known := self._name_of.get(inode)) is not None and known != (directory, name):
                del self.names[known[0]][known[1]]
            self._name_of[inode] = (directory, name)
        return [inode for inode in before.values() if inode not in self._name_of]

    def _apply_cut(self, inode: int, piece: KeptBytes) -> None:
        covered = self.coverage[inode]
        covered.intact_length = piece.start
        covered.pieces.insert(0, piece)

    def _apply_forget(self, inode: int) -> list[KeptBytes]:
        self._remove_name(inode)
        for child in self.names.pop(inode, {}).values():
            self._name_of.pop(child, None)
        covered = self.coverage.pop(inode, None)
        return covered.pieces if covered is not None else []

    def _remove_name(self, inode: int) -> None:
        known = self._name_of.pop(inode, None)
        if known is not None:
            del self.names[known[0]][known[1]]

    def _index_names(self) -> None:
        self._name_of = {
            inode: (directory, name) for directory, listing in self.names.items() for name, inode in listing.items()
        }

    def _drop_cuts(self, pieces: list[KeptBytes]) -> None:
        for piece in pieces:
            os.unlink(self.cut_path(piece))

    def _free_kept(self, inode: int) -> None:
        path = self.kept_path(inode)
        try:
            status = os.lstat(path)
        except FileNotFoundError:
            return
        is_directory = os.path.isdir(path)
        children = tuple(self.names.get(inode, {}).values())
        if is_directory or status.st_nlink == 1:
            self.record_forget(inode)
        if is_directory:
            os.rmdir(path)
        else:
            os.unlink(path)
        for child in children:  # they could only have come back with their directory
            self._free_kept(child)

    # --- File -----------------------------------------------------------------------------------------------------

    def _write(self, line: list[object]) -> None:
        self.length += os.write(self._descriptor, self._encode(line) + b"\n")

    def _replay(self) -> None:
        """Reads the ledger, and drops a last line that was not written to its end."""
        with open(f"{self.folder}/{_LEDGER}", "rb") as file:
            content = file.read()
        for line in content.split(b"\n")[:-1]:
            self._replay_line(line, self.length)
            self.length += len(line) + 1
        os.ftruncate(self._descriptor, self.length)

    def _replay_line(self, line: bytes, position: int) -> None:
        match msgspec.json.decode(line):
            case ["sync", int(inode), int(length), int(directory), str() | None as name, int(seen)]:
                if self._has_unsynced(inode, length, directory, name):
                    self._commit(seen)
                self._apply_sync(inode, length, directory, name, seen)
            case ["wrote", int(inode), int(start), int(end), int(directory), str() | None as name, int(seen)]:
                covered = self.coverage.get(inode)
                durable = end if covered is None else max(end, covered.intact_length)
                if self._has_unsynced(inode, durable, directory, name):
                    self._commit(seen)
                self._replay_synchronous_write(inode, start, end, position)
                if name is not None:
                    self._apply_name(inode, directory, name)
            case ["dir", int(directory), dict(listing), int(seen)]:
                if listing != self.names.get(directory):
                    self._commit(seen)
                self._apply_directory(directory, listing)
            case ["cut", int(inode), int(size), int(end), int(number)]:
                self._replay_cut(inode, KeptBytes(start=size, end=end, number=number, position=position))
                self._next_cut = max(self._next_cut, number + 1)
            case ["over", int(inode), int(start), int(end), int(number)]:
                self._replay_overwritten(inode, KeptBytes(start=start, end=end, number=number, position=position))
                self._next_cut = max(self._next_cut, number + 1)
            case ["name", int(inode), int(directory), str() | None as name]:
                if self._disk.has_ordered_journal:
                    change = _NameChange(position=position, inode=inode, directory=directory, name=name)
                    self._name_changes.append(change)
            case ["forget", int(inode)]:
                self._apply_forget(inode)
            case other:
                raise StorageError(path=self.folder, reason=f"not a line of a sync ledger: {other}")

    def _replay_cut(self, inode: int, piece: KeptBytes) -> None:
        """Applies the durable part of a truncation; a process that keeps no coverage notes every truncation in full."""
        covered = self.coverage.get(inode)
        if covered is not None and piece.start < covered.intact_length:
            end = min(piece.end, covered.intact_length)
            self._apply_cut(inode, msgspec.structs.replace(piece, end=end))

    # --- An ordered journal ---------------------------------------------------------------------------------------

    def _has_unsynced(self, inode: int, length: int, directory: int, name: str | None) -> bool:
        """Returns whether a sync had anything to commit. Otherwise it need not wait for the journal."""
        covered = self.coverage.get(inode)
        if covered is None or covered.pieces or covered.intact_length != length:
            return True
        return name is not None and not self.is_name_durable(inode=inode, directory=directory, name=name)

    def _commit(self, seen: int) -> None:
        """Makes durable the changes that the ledger had noted when a sync began."""
        if not self._disk.has_ordered_journal:
            return
        for change in self._name_changes:
            if change.position < seen:
                if change.name is None:
                    self._remove_name(change.inode)
                else:
                    self._apply_name(change.inode, change.directory, change.name)
        self._name_changes = [change for change in self._name_changes if change.position >= seen]
        for covered in self.coverage.values():
            covered.pieces = [piece for piece in covered.pieces if piece.position >= seen]

    def _sweep(self) -> None:
        """Removes leftovers of a killed process from ``kept``."""
        needed = {f"cut-{kept.number}" for covered in self.coverage.values() for kept in _kept(covered)}
        for name in os.listdir(self.kept_folder):
            if name.startswith("cut-"):
                if name not in needed:
                    os.unlink(f"{self.kept_folder}/{name}")
            elif not self.has_durable_name(int(name)):
                self._free_kept(int(name))

    def _compact(self) -> None:
        lines: list[list[object]] = [["dir", directory, listing, 0] for directory, listing in self.names.items()]
        lines += [["sync", inode, covered.intact_length, 0, None, 0] for inode, covered in self.coverage.items()]
        content = b"".join(self._encode(line) + b"\n" for line in lines)
        temporary = f"{self.folder}/{_LEDGER}.tmp"
        with open(temporary, "wb") as file:
            file.write(content)
            # Whoever takes what was not synced need not be the node's user, who goes on with the ledger.
            owner = os.stat(self.folder)
            if owner.st_uid != os.geteuid():
                os.fchown(file.fileno(), owner.st_uid, owner.st_gid)
        self.length = len(content)
        os.rename(temporary, f"{self.folder}/{_LEDGER}")


def _kept(covered: Coverage) -> list[KeptBytes]:
    return [*covered.pieces, *(each.before for each in covered.overwritten if each.before is not None)]
