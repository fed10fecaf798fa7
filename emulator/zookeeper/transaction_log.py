"""Reads a ZooKeeper server's transaction log: the last word on committed state, in the order of zxids.

The server syncs a transaction before it answers, and before any watch fires; so a reader of the whole log knows every
answered write. ZooKeeper's ``FileTxnLog``; numbers are big-endian::

    log.<first zxid, hex>   | "ZKLG" | int 2 | long database |  records  | zeros
    record                  | long Adler-32 of the bytes | int length | bytes | "B" |
    bytes                   | long session | int xid | long zxid | long time, ms | int type | body | digest (ignored) |

A file grows while it is read. A record that is not whole yet is read the next time.
"""

import os
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

from laststand.emulator.core.errors import StorageError
from laststand.emulator.core.zookeeper import operations
from laststand.emulator.core.zookeeper.identifiers import NodeVersion, SessionId, Zxid

LOG_FOLDER: Final = "version-2"
"""In the server's ``dataDir``."""

_HEADER_BYTES: Final = 16
_MAGIC: Final = b"ZKLG"
_RECORD_HEAD: Final = struct.Struct(">qi")
_TRANSACTION_HEAD: Final = struct.Struct(">qiqqi")
_INT: Final = struct.Struct(">i")
_END: Final = b"B"

_CREATE, _DELETE, _SET_DATA, _CHECK, _MULTI, _CREATE2 = 1, 2, 5, 13, 14, 15
_CREATE_CONTAINER, _DELETE_CONTAINER, _CREATE_TTL = 19, 20, 21
_CREATE_SESSION, _CLOSE_SESSION, _ERROR = -10, -11, -1
_CREATIONS: Final = frozenset({_CREATE, _CREATE2, _CREATE_CONTAINER, _CREATE_TTL})
_PLAIN_CREATIONS: Final = frozenset({_CREATE, _CREATE2})
"""The operations that say whether the created node is ephemeral."""
_DELETIONS: Final = frozenset({_DELETE, _DELETE_CONTAINER})

_NAMES: Final = {
    _MULTI: "Multi",
    _CREATE_SESSION: "CreateSession",
    _CLOSE_SESSION: "CloseSession",
    _ERROR: "Error",
}


Synced: TypeAlias = Callable[[], Mapping[int, int]]
"""Tells how long a prefix of each file is durable, by inode; a file that is missing has no durable byte."""


class LoggedTransaction(msgspec.Struct, frozen=True, kw_only=True):
    """One zxid.

    Attributes:
        zxid: its zxid.
        wall_ms: wall clock time at which the server accepted it, before any client learned of it.
        name: its kind, for one that changes no node.
        changes: of nodes, in order; empty if a session began, or a request was refused.
    """

    zxid: Zxid
    wall_ms: int
    name: str
    changes: tuple[operations.TreeChange, ...]


class Znode(msgspec.Struct, frozen=True):
    """A node as of the last transaction that was read.

    Attributes:
        data: content of the node.
        version: 0 at its creation, one more with each write.
        czxid: zxid of the transaction that created it.
        mzxid: zxid of its last write.
        session_id: of the session with which an ephemeral node ends; ``None`` for a persistent node.
    """

    data: bytes
    version: NodeVersion
    czxid: Zxid
    mzxid: Zxid
    session_id: SessionId | None


class TransactionLogReader:
    """Reads a server's transactions, each once. A restarted server continues in a new file.

    Args:
        directory: ``dataDir`` of the server; it may not be there yet.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory / LOG_FOLDER
        self._nodes: dict[str, Znode] = {}
        self._path: Path | None = None
        self._position = 0
        self.last_zxid = Zxid(0)

    def data(self, path: str) -> bytes | None:
        """Returns a node's data after the last transaction that was read; ``None`` if there is no node."""
        node = self._nodes.get(path)
        return None if node is None else node.data

    def tree(self, root: str = "/") -> Mapping[str, Znode]:
        """Returns a node and all below it by path, parents first."""
        prefix = root.rstrip("/") + "/"
        found = {path: node for path, node in self._nodes.items() if path == root or path.startswith(prefix)}
        return dict(sorted(found.items(), key=lambda entry: entry[0].split("/")))

    def version(self, path: str) -> NodeVersion | None:
        """Returns a node's version after the last transaction that was read."""
        node = self._nodes.get(path)
        return None if node is None else node.version

    def children(self, path: str) -> tuple[str, ...]:
        """Returns the names of a node's children, ascending, after the last transaction that was read."""
        prefix = path.rstrip("/") + "/"
        names = (each.removeprefix(prefix) for each in self._nodes if each.startswith(prefix))
        return tuple(sorted(name for name in names if "/" not in name))

    def read_new(self, *, synced: Synced | None = None) -> Iterator[LoggedTransaction]:
        """Yields the transactions that were written since the last call.

        Args:
            synced: if given, only transactions that a power loss would leave.

        Raises:
            StorageError: a file is no transaction log.
        """
        while True:
            yield from self._read_file(synced)
            following = self._next_file()
            if following is None:
                return
            yield from self._read_file(synced)  # what was written before the next file was made
            self._path, self._position = following, 0

    def _next_file(self) -> Path | None:
        """Returns the file after the current one; ``None`` as long as there is none."""
        files = sorted(self._directory.glob("log.*"), key=_first_zxid)
        if self._path is None:
            return files[0] if files else None
        later = [path for path in files if _first_zxid(path) > _first_zxid(self._path)]
        return later[0] if later else None

    def _read_file(self, synced: Synced | None) -> Iterator[LoggedTransaction]:
        if self._path is None or not self._path.exists():
            return  # power was lost before anything of it was synced; a file of that name follows
        with self._path.open("rb") as file:
            if self._position == 0:
                header = file.read(_HEADER_BYTES)
                if len(header) < _HEADER_BYTES or not any(header):
                    return  # made, and not written yet
                if header[:4] != _MAGIC:
                    raise StorageError(path=str(self._path), reason="no transaction log of ZooKeeper")
                self._position = _HEADER_BYTES
            file.seek(self._position)
            content = file.read()
            if content and synced is not None:
                end = synced().get(os.fstat(file.fileno()).st_ino, 0)
                content = content[: max(0, end - self._position)]
        position = 0
        while (record := _record_at(content, position)) is not None:
            position += _RECORD_HEAD.size + len(record) + len(_END)
            self._position += _RECORD_HEAD.size + len(record) + len(_END)
            transaction = self._apply(record)
            if transaction is not None:
                yield transaction

    def _apply(self, record: bytes) -> LoggedTransaction | None:
        session, xid, zxid, wall_ms, kind = _TRANSACTION_HEAD.unpack_from(record)
        if zxid <= self.last_zxid:
            return None  # a server that was started again may write again what it found
        self.last_zxid = Zxid(zxid)
        reader = _Reader(record, _TRANSACTION_HEAD.size)
        touched = list(self._touched(kind, reader, Zxid(zxid), SessionId(session)))
        changes = tuple(
            operations.TreeChange(
                zxid=Zxid(zxid),
                path=path,
                kind=event,
                session_id=SessionId(session),
                data=b"" if (node := self._nodes.get(path)) is None else node.data,
                version=None if node is None else node.version,
                # The server itself closes a session that has expired, and numbers no request for that.
                is_closing=kind == _CLOSE_SESSION and xid != 0,
            )
            for path, event in touched
        )
        return LoggedTransaction(
            zxid=Zxid(zxid), wall_ms=wall_ms, name=_NAMES.get(kind, f"Type{kind}"), changes=changes
        )

    def _touched(
        self, kind: int, reader: "_Reader", zxid: Zxid, session_id: SessionId
    ) -> Iterator[tuple[str, operations.ZooKeeperEventKind]]:
        """Applies a transaction; yields the nodes that it changed."""
        if kind in _CREATIONS:
            path, data = reader.text(), reader.blob()
            reader.access_list()
            owner = session_id if kind in _PLAIN_CREATIONS and reader.flag() else None
            self._nodes[path] = Znode(data, NodeVersion(0), zxid, zxid, owner)
            yield path, operations.ZooKeeperEventKind.CREATED
        elif kind in _DELETIONS:
            path = reader.text()
            self._nodes.pop(path, None)
            yield path, operations.ZooKeeperEventKind.DELETED
        elif kind == _SET_DATA:
            path, data, version = reader.text(), reader.blob(), reader.number()
            before = self._nodes.get(path)
            czxid, owner = (zxid, None) if before is None else (before.czxid, before.session_id)
            self._nodes[path] = Znode(data, NodeVersion(version), czxid, zxid, owner)
            yield path, operations.ZooKeeperEventKind.DATA_CHANGED
        elif kind == _CLOSE_SESSION:
            for path in reader.texts() if reader.has_more else ():
                self._nodes.pop(path, None)
                yield path, operations.ZooKeeperEventKind.DELETED
        elif kind == _MULTI:
            parts = [(reader.number(), reader.blob()) for _ in range(reader.number())]
            if all(part != _ERROR for part, _ in parts):
                for part, body in parts:
                    yield from self._touched(part, _Reader(body, 0), zxid, session_id)


class _Reader:
    """Reads ZooKeeper's serialization (jute)."""

    def __init__(self, content: bytes, position: int) -> None:
        self._content = content
        self._position = position

    @property
    def has_more(self) -> bool:
        return self._position < len(self._content)

    def number(self) -> int:
        (value,) = _INT.unpack_from(self._content, self._position)
        self._position += _INT.size
        return int(value)

    def blob(self) -> bytes:
        length = max(0, self.number())
        begin, self._position = self._position, self._position + length
        return self._content[begin : self._position]

    def text(self) -> str:
        return self.blob().decode()

    def flag(self) -> bool:
        value = bool(self._content[self._position])
        self._position += 1
        return value

    def access_list(self) -> None:
        """Skips an access control list: permissions, scheme and identity of each entry."""
        for _ in range(max(0, self.number())):
            self.number(), self.blob(), self.blob()

    def texts(self) -> list[str]:
        return [self.text() for _ in range(max(0, self.number()))]


def _record_at(content: bytes, position: int) -> bytes | None:
    """Returns the record that begins at a position; ``None`` if it is incomplete, or there is none."""
    if position + _RECORD_HEAD.size > len(content):
        return None
    checksum, length = _RECORD_HEAD.unpack_from(content, position)
    begin = position + _RECORD_HEAD.size
    record = content[begin : begin + length]
    if length <= 0 or content[begin + length : begin + length + 1] != _END or zlib.adler32(record) != checksum:
        return None
    return record


def _first_zxid(path: Path) -> int:
    return int(path.suffix[1:], 16)
