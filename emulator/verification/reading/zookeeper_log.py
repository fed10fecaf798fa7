"""Reads a ZooKeeper server's transaction log on disk, as evidence in addition to the harness's events.

It is a second reader, on purpose: another one produced the events (``laststand.emulator.zookeeper``). ZooKeeper's
``FileTxnLog``; numbers are big-endian::

    log.<first zxid>   | "ZKLG" | int 2 | long database |  records  | zeros
    record             | long Adler-32 | int length | transaction | "B"
    transaction        | long session | int xid | long zxid | long time | int type | body
"""

import json
import struct
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from laststand.emulator.core import events
from laststand.emulator.core.types import ZnodeWrite
from laststand.emulator.verification.facts.controller_terms import state_node

LOG_DIRECTORY: Final = Path("data") / "version-2"

_FILE_HEAD: Final = 16
_RECORD: Final = struct.Struct(">qi")
_TRANSACTION: Final = struct.Struct(">qiqqi")
_INT: Final = struct.Struct(">i")
_WRITES: Final = {
    1: ZnodeWrite.CREATED,
    15: ZnodeWrite.CREATED,
    2: ZnodeWrite.DELETED,
    5: ZnodeWrite.DATA_CHANGED,
}
_MULTI: Final = 14
_CLOSE_SESSION: Final = -11
_ERROR: Final = -1
_RECOVERED: Final = 0
_SENTENCES_MAX: Final = 10


class LoggedWrite(NamedTuple):
    """A change of a node; ``data`` is ``None`` if the node was deleted."""

    zxid: int
    path: str
    write: ZnodeWrite
    data: bytes | None


def transaction_logs(directory: Path) -> list[Path]:
    """Returns the files of a node's transaction log in order; none if the node is no ZooKeeper server."""
    return sorted((directory / LOG_DIRECTORY).glob("log.*"), key=lambda path: int(path.suffix[1:], 16))


def read_zookeeper_log(contents: Iterable[bytes]) -> tuple[LoggedWrite, ...]:
    """Returns the changes of nodes in the files of a transaction log; each zxid once."""
    found: list[LoggedWrite] = []
    last = 0
    for content in contents:
        position = _FILE_HEAD
        while (record := _record_at(content, position)) is not None:
            position += _RECORD.size + len(record) + 1
            _, _, zxid, _, kind = _TRANSACTION.unpack_from(record)
            if zxid > last:  # a restarted server may write transactions again
                found += _writes(zxid, kind, record[_TRANSACTION.size :])
                last = zxid
    return tuple(found)


def _record_at(content: bytes, position: int) -> bytes | None:
    if position + _RECORD.size > len(content):
        return None
    checksum, length = _RECORD.unpack_from(content, position)
    record = content[position + _RECORD.size : position + _RECORD.size + length]
    is_whole = 0 < length == len(record) and zlib.adler32(record) == checksum
    return record if is_whole else None


def _writes(zxid: int, kind: int, body: bytes) -> Iterator[LoggedWrite]:
    if kind == _MULTI:
        parts = list(_parts(body))
        if all(part != _ERROR for part, _ in parts):
            for part, inner in parts:
                yield from _writes(zxid, part, inner)
    elif kind == _CLOSE_SESSION:
        (count,) = _INT.unpack_from(body) if body else (0,)
        position = _INT.size
        for _ in range(count):
            path, position = _blob(body, position)
            yield LoggedWrite(zxid, path.decode(), ZnodeWrite.DELETED, None)
    elif kind in _WRITES:
        path, position = _blob(body, 0)
        write = _WRITES[kind]
        data = None if write is ZnodeWrite.DELETED else _blob(body, position)[0]
        yield LoggedWrite(zxid, path.decode(), write, data)


def _parts(body: bytes) -> Iterator[tuple[int, bytes]]:
    (count,) = _INT.unpack_from(body)
    position = _INT.size
    for _ in range(count):
        (kind,) = _INT.unpack_from(body, position)
        inner, position = _blob(body, position + _INT.size)
        yield kind, inner


def _blob(body: bytes, position: int) -> tuple[bytes, int]:
    (length,) = _INT.unpack_from(body, position)
    begin = position + _INT.size
    end = begin + max(length, 0)
    return body[begin:end], end


def contradictions_of_zookeeper(
    node: int,
    log: tuple[LoggedWrite, ...],
    written: Iterable[events.ZnodeWritten],
    changes: Iterable[events.PartitionChanged],
) -> Iterator[str]:
    """Yields a sentence for each of the first few contradictions between a server's log and the events about writes."""
    name = f"the transaction log of node {node}"
    reported = {(each.metadata_offset, each.path, each.write) for each in written}
    logged = {(each.zxid, each.path, each.write) for each in log}
    sentences: list[str] = []
    for zxid, path, write in sorted(reported ^ logged, key=lambda each: (each[0], each[1], each[2].value)):
        if (zxid, path, write) in reported:
            sentences.append(f"{name} has no {write.value} of {path} at zxid {zxid}, and the events do")
        else:
            sentences.append(f"{name} has {write.value} of {path} at zxid {zxid}, and the events do not")
    contents = {(each.zxid, each.path): each.data for each in log}
    for change in changes:
        nodes = {
            state_node(change.topic, change.partition): ("leader and ISR", _is_state_of),
            f"/brokers/topics/{change.topic}": ("the replicas", _is_assignment_of),
        }
        for path, (what, is_of) in nodes.items():
            data = contents.get((change.metadata_offset, path))
            if data is not None and not is_of(change, data):
                place = f"{what} of {change.topic}-{change.partition} at zxid {change.metadata_offset}"
                sentences.append(f"{name} and the events say different things of {place}")
    yield from sentences[:_SENTENCES_MAX]


def _is_state_of(change: events.PartitionChanged, data: bytes) -> bool:
    """Returns whether a state node's content agrees with an event; content that is no JSON does not."""
    try:
        state = json.loads(data)
        leader = None if state["leader"] < 0 else state["leader"]
        found = (leader, state["leader_epoch"], sorted(state["isr"]), state.get("leader_recovery_state", _RECOVERED))
    except (ValueError, KeyError, TypeError, AttributeError):
        return False
    return found == (change.leader, change.leader_epoch, sorted(change.isr), change.leader_recovery_state.value)


def _is_assignment_of(change: events.PartitionChanged, data: bytes) -> bool:
    """Returns whether a topic node's content agrees with an event about the partition's replicas."""
    try:
        replicas = json.loads(data)["partitions"][str(change.partition)]
    except (ValueError, KeyError, TypeError):
        return False
    return bool(replicas == list(change.replicas))
