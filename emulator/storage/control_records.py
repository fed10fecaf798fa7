"""The quorum's own records as Kafka has them in control batches (``ControlRecordUtils``).

::

    key             0 i16 | type i16
    2 LeaderChange  version i16 | leader i32 | voters: [id i32] | granting voters: [id i32]
    5 KRaftVersion  version i16 | kraft.version i16
    6 KRaftVoters   version i16 | voters: [id i32 | directory uuid | end points: [name | host | port u16]
                                           | lowest and highest kraft.version i16]

All flexible: compact lengths, and tagged fields, none of ours, after each structure. From version 1 on, a LeaderChange
names directories, too, which are read over.
"""

import struct
from enum import IntEnum
from typing import Final, assert_never

from laststand.emulator.core.address import host_and_port
from laststand.emulator.core.quorum.batches import ControlRecord, KRaftVersion, KRaftVoters, LeaderChange
from laststand.emulator.core.quorum.voter_set import DirectoryId, ReplicaKey, VersionRange, Voter, VoterSet
from laststand.emulator.core.types import NodeId
from laststand.emulator.core.uuid_text import uuid_for
from laststand.emulator.storage.fields import INT16, INT32, UINT16, FieldError, FieldReader, compact_text
from laststand.emulator.storage.record_batch import MARKER_KEY
from laststand.emulator.storage.varint import varint

_VERSION: Final = 0
_WITH_DIRECTORIES: Final = 1
_HEAD: Final = struct.Struct(">hi")
_LEVEL: Final = struct.Struct(">hh")
_NO_TAGS: Final = b"\x00"
_NO_DIRECTORY: Final = bytes(16)
_NOBODY: Final = "A" * 22
_LISTENER: Final = "CONTROLLER"
"""Kafka names each end point; ours have no name."""


class _Type(IntEnum):
    """Kafka's ``ControlRecordType``."""

    LEADER_CHANGE = 2
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


def encode_control(record: ControlRecord) -> tuple[bytes, bytes]:
    """Returns key and value of a record."""
    match record:
        case LeaderChange():
            parts = [
                _HEAD.pack(_VERSION, record.leader_id),
                *_nodes(record.voters),
                *_nodes(record.granting_voters),
                _NO_TAGS,
            ]
            return _key(_Type.LEADER_CHANGE), b"".join(parts)
        case KRaftVersion(level=level):
            return _key(_Type.KRAFT_VERSION), _LEVEL.pack(_VERSION, level) + _NO_TAGS
        case KRaftVoters(voters=voters):
            parts = [INT16.pack(_VERSION), varint(len(voters.voters) + 1)]
            for voter in voters.voters:
                parts += _voter(voter)
            return _key(_Type.KRAFT_VOTERS), b"".join((*parts, _NO_TAGS))
        case _:
            assert_never(record)


def decode_control(key: bytes, value: bytes) -> ControlRecord:
    """Returns the record of a key and a value.

    Raises:
        FieldError: the bytes are not such a record.
    """
    if len(key) != MARKER_KEY.size:
        raise FieldError(f"a key of {len(key)} bytes")
    _, kind = MARKER_KEY.unpack(key)
    reader = FieldReader(value)
    version = reader.int16()
    match kind:
        case _Type.LEADER_CHANGE:
            has_directories = version >= _WITH_DIRECTORIES
            return LeaderChange(
                leader_id=NodeId(reader.int32()),
                voters=reader.array(lambda: _read_node(reader, has_directories=has_directories)),
                granting_voters=reader.array(lambda: _read_node(reader, has_directories=has_directories)),
            )
        case _Type.KRAFT_VERSION:
            return KRaftVersion(level=reader.int16())
        case _Type.KRAFT_VOTERS:
            return KRaftVoters(voters=VoterSet.of(reader.array(lambda: _read_voter(reader))))
        case _:
            raise FieldError(f"a control record of type {kind}")


def _key(kind: _Type) -> bytes:
    return MARKER_KEY.pack(_VERSION, kind)


def _nodes(node_ids: tuple[NodeId, ...]) -> list[bytes]:
    return [varint(len(node_ids) + 1), *(INT32.pack(node_id) + _NO_TAGS for node_id in node_ids)]


def _read_node(reader: FieldReader, *, has_directories: bool) -> NodeId:
    node_id = NodeId(reader.int32())
    if has_directories:
        reader.uuid()
    reader.tagged()
    return node_id


def _voter(voter: Voter) -> list[bytes]:
    directory_id = voter.key.directory_id
    parts = [INT32.pack(voter.key.node_id), _NO_DIRECTORY if directory_id is None else uuid_for(directory_id)[0]]
    if voter.listener:
        host, port = host_and_port(voter.listener)
        parts += (varint(2), compact_text(_LISTENER), compact_text(host), UINT16.pack(port), _NO_TAGS)
    else:
        parts.append(varint(1))
    return [*parts, _LEVEL.pack(*voter.versions), _NO_TAGS, _NO_TAGS]


def _read_voter(reader: FieldReader) -> Voter:
    node_id, directory = NodeId(reader.int32()), reader.uuid()
    listeners = reader.array(lambda: _read_listener(reader))
    versions = VersionRange(reader.int16(), reader.int16())
    reader.tagged()
    reader.tagged()
    directory_id = None if directory == _NOBODY else DirectoryId(directory)
    return Voter(key=ReplicaKey(node_id, directory_id), listener=next(iter(listeners), ""), versions=versions)


def _read_listener(reader: FieldReader) -> str:
    _, host, port = reader.text(), reader.text(), reader.uint16()
    reader.tagged()
    return f"{host}:{port}"
