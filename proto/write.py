"""Writes the ``*.proto`` files beside this one from the requests and responses of ``laststand.emulator.core``.

A struct is a message, its docstring the comment. Field 1 of every request and response is its ``cause_id``, field 2 of
what a stream carries its ``correlation_id``; the struct's fields follow in their order. So a new field is declared
last, or else all numbers after it change, which ``tests/unit/rpc/test_wire.py`` refuses. ``make proto`` runs this file
before it compiles the result.

A message is in the file of the service that uses it, in ``common.proto`` if a broker and a KRaft controller do.
"""

import textwrap
import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

from laststand.emulator.core import admin_messages
from laststand.emulator.core.batch import BatchDescriptor
from laststand.emulator.core.message import Message
from laststand.emulator.core.quorum.batches import ControlRecord, LogPosition
from laststand.emulator.core.quorum.voter_set import ReplicaKey, VersionRange
from laststand.emulator.core.struct_docs import field_meanings, first_paragraph
from laststand.emulator.core.types import (
    BrokerEpoch,
    BrokerId,
    LeaderEpoch,
    MetadataOffset,
    NodeId,
    Offset,
    PartitionEpoch,
    ProducerEpoch,
    ProducerId,
    ProducerIdentity,
    TopicId,
    TopicPartition,
)
from laststand.emulator.core.zookeeper import control_messages
from laststand.emulator.core.zookeeper.identifiers import ControllerEpoch
from laststand.emulator.rpc.services import (
    BROKER_SERVICE,
    CONTROLLER_SERVICE,
    QUORUM_SERVICE,
    RESPONSE_OF,
    STREAMED,
    UNARY,
    ZOOKEEPER_BROKER_SERVICE,
    api_name,
)

FOLDER: Final = Path(__file__).resolve().parent
WIDTH: Final = 120
_IMPORTED_FROM: Final = "laststand/emulator/rpc/generated"

Kind: TypeAlias = object
"""The type that a message stands for: a struct, a named tuple, or an annotation of a tuple."""

_INTEGERS: Final[Mapping[object, str]] = {
    int: "int32",
    NodeId: "int32",
    BrokerId: "int32",
    LeaderEpoch: "int32",
    PartitionEpoch: "int32",
    ControllerEpoch: "int32",
    ProducerEpoch: "int32",
    ProducerId: "int64",
    BrokerEpoch: "int64",
    Offset: "int64",
    MetadataOffset: "sint64",
}
"""Types in which integers are written. Those that may be negative are ``sint``."""

_NEGATIVE_IF_UNKNOWN: Final = (ProducerEpoch, ProducerId, BrokerEpoch)
"""They are -1 where there is none, unless the field is optional."""

_NEGATIVE: Final[Mapping[tuple[str, str], str]] = {
    ("ProduceRequest", "acks"): "sint32",
    ("ProducePartitionResponse", "duplicate_timestamp_ms"): "int64",
    ("ListOffsetsPosition", "timestamp"): "sint64",
    ("ListOffsetsResult", "timestamp"): "sint64",
    ("EpochPosition", "leader_epoch"): "sint32",
    ("OffsetCommitRequest", "generation_id"): "sint32",
    ("JoinGroupResponse", "generation_id"): "sint32",
    ("SyncGroupRequest", "generation_id"): "sint32",
    ("HeartbeatRequest", "generation_id"): "sint32",
    ("OffsetCommitRequest", "retention_ms"): "int64",
    ("CommittedOffset", "offset"): "int64",
    ("AlterPartitionData", "leader_epoch"): "sint32",
    ("AlterPartitionData", "partition_epoch"): "sint32",
    ("AlterPartitionResult", "leader_epoch"): "sint32",
    ("AlterPartitionResult", "partition_epoch"): "sint32",
    ("ReplicaProgress", "last_fetch_ms"): "int64",
    ("ReplicaProgress", "last_caught_up_ms"): "int64",
}
"""Fields that may be negative, or have 64 bits, although others of their type may not."""

_TUPLES: Final[Mapping[object, tuple[str, tuple[str, ...]]]] = {
    TopicPartition: ("PartitionName", ("topic", "partition")),
    tuple[str, int]: ("PartitionName", ("topic", "partition")),
    tuple[str, str]: ("TopicConfig", ("name", "value")),
    tuple[str, bytes]: ("MemberAssignment", ("member_id", "assignment")),
    ProducerIdentity: ("ProducerIdentity", ("producer_id", "producer_epoch")),
    tuple[TopicId, int]: ("ReplicaReference", ("topic_id", "partition")),
    tuple[BrokerId, ...]: ("ReplicaAssignment", ("broker_ids",)),
    tuple[str, ...]: ("ConfigurationKeys", ("names",)),
    tuple[TopicPartition, ...]: ("PartitionNames", ("names",)),
    tuple[tuple[str, int], ...]: ("PartitionNames", ("names",)),
    tuple[admin_messages.ElectablePartition, ...]: ("ElectablePartitions", ("partitions",)),
    ReplicaKey: ("ReplicaKey", ("node_id", "directory_id")),
    LogPosition: ("LogPosition", ("leader_epoch", "end_offset")),
    VersionRange: ("VersionRange", ("lowest", "highest")),
}
"""Messages that stand for tuples, and their fields. Of one field: a list that may be absent, or is in a list."""

_VARIANTS: Final[Mapping[object, tuple[str, Mapping[str, type[msgspec.Struct]]]]] = {
    ControlRecord: (
        "ControlRecord",
        dict(zip(("leader_change", "kraft_version", "kraft_voters"), typing.get_args(ControlRecord), strict=True)),
    ),
}
"""Messages that stand for one of several structs: a field for each, of which one is there."""

_NAMES: Final[Mapping[object, str]] = {
    control_messages.PartitionError: "ControlPartitionError",
    control_messages.MetadataPartition: "ControlMetadataPartition",
}
"""Structs whose message has another name."""

_RECORDS: Final = {"batch": "records", "span": "records"}
"""Fields that stand for record batches, and the one field of a message that has their bytes."""

_FILES: Final[Mapping[str, tuple[str, ...]]] = {
    "common": (
        "Messages that both a broker and a KRaft controller use. Kafka's -1 is an absent `optional` field; `error` is "
        "Kafka's error number. `cause_id` names what set a request off (a client operation, a plan step, a timer); "
        "every response repeats it.",
    ),
    "broker": (
        "What a broker serves, to clients and to its fellow brokers.",
        "Produce and Fetch are bidirectional streams, and transport only: every response answers exactly one request, "
        "by correlation id. A frame carries one or more messages that were ready at the same time. `records` is one "
        "record batch (Produce) or several in a row (Fetch), in Kafka's on-disk format, opaque to this layer.",
    ),
    "controller": (
        "What a KRaft controller serves: the life of brokers, partition changes, administrators, and the stream of "
        "committed metadata.",
    ),
    "control": (
        "What the brokers of a cluster with ZooKeeper send each other: a controller is one of them. Requests to it "
        "that a KRaft cluster has, too (AlterPartition, elections, reassignments), have their messages in "
        "controller.proto.",
        "A broker epoch is the zxid of the broker's node in ZooKeeper. `leader` and `leader_epoch` are negative where "
        "there is none, as in Kafka.",
    ),
    "quorum": (
        "What each of several controllers serves: the requests by which they agree on one metadata log, and those of "
        "administrators about their quorum. FetchMetadata is Kafka's Fetch of `__cluster_metadata`.",
    ),
}
"""Every file, and the paragraphs above it."""

_SERVICES: Final = {
    "broker": BROKER_SERVICE,
    "controller": CONTROLLER_SERVICE,
    "control": ZOOKEEPER_BROKER_SERVICE,
    "quorum": QUORUM_SERVICE,
}
_METADATA_STREAM_METHOD: Final = """\
  // First one message with the end offset alone, then committed batches in order, for as long as the caller keeps up.
  rpc MetadataStream(MetadataStreamRequest) returns (stream MetadataStreamResponse);
"""
_METADATA_STREAM: Final = """
message MetadataStreamRequest {
  string cause_id = 1;
  // First offset wanted; the start of a batch, or the end of the log.
  int64 from_offset = 2;
  // The highest that the caller has seen; a controller of a lower one ends the stream.
  int32 controller_epoch = 3;
}

message CommittedBatch {
  int64 base_offset = 1;
  int32 record_count = 2;
  // The metadata log's own encoding of the batch's records.
  bytes records = 3;
}

message MetadataStreamResponse {
  string cause_id = 1;
  // Committed records ended here (exclusive) when the message was made.
  int64 end_offset = 2;
  repeated CommittedBatch batches = 3;
  // Of the controller that serves the stream; 0 where it is the only one.
  int32 controller_epoch = 4;
}
"""


def proto_files() -> dict[str, str]:
    """Returns the text of every file, by its name."""
    used = {name: _reached(service, name == "broker") for name, service in _SERVICES.items()}
    common = {name: kind for name, kind in used["broker"].items() if name in used["controller"]}
    own = {
        "common": common,
        "broker": _without(used["broker"], common),
        "controller": _without(used["controller"], common),
        "control": _without(used["control"], used["controller"]),
        "quorum": used["quorum"],
    }
    imports = {
        "common": (),
        "broker": ("common",),
        "controller": ("common",),
        "control": ("common", "controller"),
        "quorum": (),
    }
    return {
        f"{name}.proto": "".join([*_head(name, imports[name]), *_service(name), *map(_message, own[name].values())])
        + (_METADATA_STREAM if name == "controller" else "")
        for name in _FILES
    }


def _reached(service: str, has_streams: bool) -> dict[str, Kind]:  # noqa: FBT001
    """Returns the messages that a service uses, each behind those that it is made of."""
    found: dict[str, Kind] = {}
    for request in (*(STREAMED if has_streams else ()), *UNARY[service]):
        for kind in (request, RESPONSE_OF[request]):
            _reach(kind, found)
    return found


def _reach(kind: Kind, found: dict[str, Kind]) -> None:
    for _, annotation in _fields(kind):
        part = _part(annotation)
        if part is not None:
            _reach(part, found)
    found.setdefault(_name(kind), kind)


def _without(messages_of: Mapping[str, Kind], others: Mapping[str, Kind]) -> dict[str, Kind]:
    return {name: kind for name, kind in messages_of.items() if name not in others}


def _head(name: str, imports: Iterable[str]) -> Iterator[str]:
    for paragraph in _FILES[name]:
        yield from (*_comment(paragraph, ""), "//\n")
    yield '// Written by proto/write.py.\nsyntax = "proto3";\n\npackage laststand;\n'
    for other in imports:
        yield f'\nimport "{_IMPORTED_FROM}/{other}.proto";\n'


def _service(name: str) -> Iterator[str]:
    if name not in _SERVICES:
        return
    yield f"\nservice {_SERVICES[name].partition('.')[2]} {{\n"
    for request in STREAMED if name == "broker" else ():
        frames = f"stream {request.__name__}Frame", f"stream {RESPONSE_OF[request].__name__}Frame"
        yield f"  rpc {api_name(request)}({frames[0]}) returns ({frames[1]});\n"
    for request in UNARY[_SERVICES[name]]:
        yield f"  rpc {api_name(request)}({request.__name__}) returns ({RESPONSE_OF[request].__name__});\n"
    yield (_METADATA_STREAM_METHOD if name == "controller" else "") + "}\n"


def _message(kind: Kind) -> str:
    """Returns the text of a message; of one that is streamed, with its frame."""
    name = _name(kind)
    meanings: Mapping[str, str] = {}
    lines = ["\n"]
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        meanings = field_meanings(kind)
        lines += _comment(first_paragraph(kind), "")
    fields = list(_fields(kind))
    lines.append(f"message {name} {{\n" if fields else f"message {name} {{}}\n")
    for number, (field, annotation) in enumerate(fields, start=1):
        lines += _comment(meanings.get(field, ""), "  ")
        lines.append(f"  {_type(annotation, (name, field))} {_RECORDS.get(field) or field} = {number};\n")
    if fields:
        lines.append("}\n")
    if kind in _streamed():
        lines.append(f"\nmessage {name}Frame {{\n  repeated {name} messages = 1;\n}}\n")
    return "".join(lines)


def _streamed() -> tuple[Kind, ...]:
    return (*STREAMED, *(RESPONSE_OF[request] for request in STREAMED))


def _fields(kind: Kind) -> Iterator[tuple[str, object]]:
    """Yields the fields of a message, in order, each with what the core declares it as."""
    if kind in _TUPLES:
        _, names = _TUPLES[kind]
        items = typing.get_args(kind) or tuple(typing.get_type_hints(kind).values())
        is_list = items[-1] is Ellipsis
        yield from ((names[0], kind),) if is_list else zip(names, items, strict=True)
        return
    if kind in _VARIANTS:
        yield from ((field, each | None) for field, each in _VARIANTS[kind][1].items())
        return
    assert isinstance(kind, type)
    if issubclass(kind, Message):
        yield "cause_id", str
        if kind in _streamed():
            yield "correlation_id", Offset
    for field in msgspec.structs.fields(kind):
        if field.type != tuple[BatchDescriptor, ...]:
            yield field.name, bytes if field.name in _RECORDS else field.type


def _name(kind: Kind) -> str:
    for names in (_TUPLES, _VARIANTS):
        if kind in names:
            return names[kind][0]
    assert isinstance(kind, type)
    return _NAMES.get(kind, kind.__name__)


def _part(annotation: object) -> Kind | None:
    """Returns what the message of a field stands for; ``None`` for fields of numbers, text and flags."""
    inner = _inner(annotation)
    if inner is not annotation:
        return inner if inner in _TUPLES else _part(inner)
    if typing.get_origin(annotation) is tuple and typing.get_args(annotation)[-1] is Ellipsis:
        item = typing.get_args(annotation)[0]
        return item if item in _TUPLES else _part(item)
    is_message = annotation in (*_TUPLES, *_VARIANTS) or (
        isinstance(annotation, type) and issubclass(annotation, msgspec.Struct)
    )
    return annotation if is_message else None


def _inner(annotation: object) -> object:
    """Returns X for ``X | None``, and the annotation itself for any other."""
    members = typing.get_args(annotation) if typing.get_origin(annotation) in (typing.Union, types.UnionType) else ()
    if types.NoneType not in members:
        return annotation
    (inner,) = (member for member in members if member is not types.NoneType)
    return inner


def _type(annotation: object, place: tuple[str, str]) -> str:
    inner = _inner(annotation)
    if inner is not annotation:
        return f"optional {_name(inner) if inner in _TUPLES else _scalar_or_message(inner, place, is_optional=True)}"
    if typing.get_origin(annotation) is tuple and typing.get_args(annotation)[-1] is Ellipsis:
        item = typing.get_args(annotation)[0]
        return f"repeated {_name(item) if item in _TUPLES else _scalar_or_message(item, place)}"
    return _scalar_or_message(annotation, place)


def _scalar_or_message(annotation: object, place: tuple[str, str], *, is_optional: bool = False) -> str:
    if (part := _part(annotation)) is not None:
        return _name(part)
    if annotation in (bool, bytes):
        return annotation.__name__
    if annotation is float:
        return "double"
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        values = [member.value for member in annotation]
        return "string" if isinstance(values[0], str) else "sint32" if min(values) < 0 else "int32"
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return f"s{_INTEGERS[typing.get_args(annotation)[0]]}"
    if annotation in _INTEGERS:
        may_be_negative = annotation in _NEGATIVE_IF_UNKNOWN and not is_optional
        return _NEGATIVE.get(place, f"{'s' if may_be_negative else ''}{_INTEGERS[annotation]}")
    return "string"


def _comment(text: str, indent: str) -> Iterator[str]:
    for line in textwrap.wrap(text, WIDTH - len(indent) - 3):
        yield f"{indent}// {line}\n"


def main() -> None:
    """Writes the files that are not as they should be."""
    for name, text in proto_files().items():
        path = FOLDER / name
        if path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
