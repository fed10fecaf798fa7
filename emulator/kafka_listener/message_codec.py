"""Kafka's messages as bytes, in both directions, for every API of ``messages.txt``.

Bytes that others sent are read with the bounds of ``FieldReader``. Unknown tagged fields are skipped.
"""

import functools
import struct
from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

from laststand.emulator.core.uuid_text import uuid_bytes
from laststand.emulator.kafka_listener.messages import FieldDefinition, Message, all_apis
from laststand.emulator.storage.fields import (
    INT8,
    INT16,
    INT32,
    INT64,
    UINT16,
    FieldError,
    FieldReader,
)

ZERO_UUID: Final = "A" * 22
"""Kafka's text of the UUID that stands for none."""

Buffers: TypeAlias = list[bytes | memoryview]
"""Parts of a message, in order: record batches are not copied."""


class Writer:
    """Collects the parts of a message."""

    __slots__ = ("_done", "_open")

    def __init__(self) -> None:
        self._done: Buffers = []
        self._open = bytearray()

    def append(self, data: bytes) -> None:
        """Appends bytes."""
        self._open += data

    def varint(self, value: int) -> None:
        """Appends an unsigned number of variable length."""
        while value > 0x7F:
            self._open.append(value & 0x7F | 0x80)
            value >>= 7
        self._open.append(value)

    def attach(self, data: bytes | memoryview) -> None:
        """Appends bytes without a copy of them."""
        self._done += (bytes(self._open), data)
        self._open.clear()

    def buffers(self) -> Buffers:
        """Returns the written bytes."""
        return [*self._done, bytes(self._open)]


_CoderT = TypeVar("_CoderT")
_Read: TypeAlias = Callable[[FieldReader], Any]
_Write: TypeAlias = Callable[[Writer, Any], None]

_NUMBERS: Final = {
    "int8": INT8,
    "int16": INT16,
    "uint16": UINT16,
    "int32": INT32,
    "uint32": struct.Struct(">I"),
    "int64": INT64,
    "float64": struct.Struct(">d"),
}
_NEVER_NULL: Final = frozenset({*_NUMBERS, "bool", "uuid"})


class MessageCodec:
    """Reads and writes one message of one version.

    Args:
        fields: of the message.
        version: of the message.
        is_flexible: whether lengths are compact and structures end with tagged fields.
    """

    def __init__(self, fields: Sequence[FieldDefinition], *, version: int, is_flexible: bool) -> None:
        self._read = _struct_reader(fields, version, is_flexible=is_flexible)
        self._write = _struct_writer(fields, version, is_flexible=is_flexible)

    def read(self, reader: FieldReader) -> Message:
        """Reads a message; fields that the version has not, or that are left out, have their defaults.

        Raises:
            FieldError: the bytes are not such a message.
        """
        message: Message = self._read(reader)
        return message

    def write(self, message: Message, writer: Writer) -> None:
        """Writes a message; missing fields have their defaults, and fields that the version lacks are left out."""
        self._write(writer, message)


@functools.cache
def request_codec(key: int, version: int) -> MessageCodec:
    """Returns the codec of an API's requests."""
    api = all_apis()[key]
    return MessageCodec(api.request, version=version, is_flexible=version in api.flexible)


@functools.cache
def response_codec(key: int, version: int) -> MessageCodec:
    """Returns the codec of an API's responses."""
    api = all_apis()[key]
    return MessageCodec(api.response, version=version, is_flexible=version in api.flexible)


def read_client_id(reader: FieldReader, *, is_flexible: bool) -> str:
    """Reads the rest of a request's header, after the correlation id.

    Raises:
        FieldError: the bytes are not such a header.
    """
    size = reader.int16()
    client_id = "" if size < 0 else str(reader.raw_bytes(size), "utf-8", errors="replace")
    if is_flexible:
        reader.tagged()
    return client_id


# --- Fields -------------------------------------------------------------------------------------------------------


class _Coders(NamedTuple, Generic[_CoderT]):
    """Makers of readers, or of writers."""

    value: Callable[..., _CoderT]
    structure: Callable[..., _CoderT]
    array: Callable[..., _CoderT]
    nullable_structure: Callable[[_CoderT], _CoderT]


def _coder(coders: _Coders[_CoderT], field: FieldDefinition, version: int, *, is_flexible: bool) -> _CoderT:
    """Returns the function that reads, or writes, a field: a value, a structure, or an array of these."""
    if field.type:
        coder = coders.value(field.type, is_flexible=is_flexible)
    else:
        coder = coders.structure(field.fields, version, is_flexible=is_flexible)
    if field.is_array:
        return coders.array(coder, is_flexible=is_flexible)
    return coders.nullable_structure(coder) if version in field.nullable and not field.type else coder


# --- Reading ------------------------------------------------------------------------------------------------------


def _struct_reader(fields: Sequence[FieldDefinition], version: int, *, is_flexible: bool) -> _Read:
    present = [field for field in fields if version in field.versions]
    in_place = [
        (field.name, _field_reader(field, version, is_flexible=is_flexible)) for field in present if field.tag is None
    ]
    tagged = {
        field.tag: (field.name, _field_reader(field, version, is_flexible=is_flexible))
        for field in present
        if field.tag is not None
    }
    read_in_place = {name for name, _ in in_place}
    defaults = [(field.name, field.default) for field in fields if field.name not in read_in_place]

    def read(reader: FieldReader) -> Message:
        message: Message = {}
        for name, default in defaults:
            message[name] = default
        for name, read_field in in_place:
            message[name] = read_field(reader)
        if is_flexible:
            for tag, content in reader.tagged():
                if tag in tagged:
                    name, read_field = tagged[tag]
                    message[name] = read_field(content)
        return message

    return read


def _field_reader(field: FieldDefinition, version: int, *, is_flexible: bool) -> _Read:
    read = _coder(_READERS, field, version, is_flexible=is_flexible)
    if version in field.nullable or (field.type in _NEVER_NULL and not field.is_array):
        return read
    return _not_null(read, field.name)


def _not_null(read: _Read, what: str) -> _Read:
    def read_value(reader: FieldReader) -> Any:
        value = read(reader)
        if value is None:
            raise FieldError(f"{what} is null")
        return value

    return read_value


def _array_reader(element: _Read, *, is_flexible: bool) -> _Read:
    element = _not_null(element, "an element")
    length = _length_reader(INT32, is_flexible=is_flexible)

    def read(reader: FieldReader) -> list[Any] | None:
        size = length(reader)
        return None if size < 0 else [element(reader) for _ in range(reader.count(size))]

    return read


def _nullable_struct_reader(structure: _Read) -> _Read:
    return lambda reader: None if reader.number(INT8) < 0 else structure(reader)


def _length_reader(form: struct.Struct, *, is_flexible: bool) -> Callable[[FieldReader], int]:
    return (lambda reader: reader.varint() - 1) if is_flexible else (lambda reader: int(reader.number(form)))


def _value_reader(kind: str, *, is_flexible: bool) -> _Read:
    if kind in _NUMBERS:
        form = _NUMBERS[kind]
        return lambda reader: reader.number(form)
    if kind == "bool":
        return FieldReader.boolean
    if kind == "uuid":
        return FieldReader.uuid
    length = _length_reader(INT16 if kind == "string" else INT32, is_flexible=is_flexible)
    content = FieldReader.utf8 if kind == "string" else FieldReader.raw_bytes

    def read(reader: FieldReader) -> Any:
        size = length(reader)
        return None if size < 0 else content(reader, size)

    return read


_READERS: Final[_Coders[_Read]] = _Coders(
    value=_value_reader, structure=_struct_reader, array=_array_reader, nullable_structure=_nullable_struct_reader
)

# --- Writing ------------------------------------------------------------------------------------------------------


def _struct_writer(fields: Sequence[FieldDefinition], version: int, *, is_flexible: bool) -> _Write:
    present = [field for field in fields if version in field.versions]
    in_place = [
        (field.name, field.default, _field_writer(field, version, is_flexible=is_flexible))
        for field in present
        if field.tag is None
    ]
    tagged = [
        (field.name, field.default, field.tag, _field_writer(field, version, is_flexible=is_flexible))
        for field in sorted(present, key=lambda field: field.tag or 0)
        if field.tag is not None
    ]

    def write(writer: Writer, message: Message) -> None:
        for name, default, write_field in in_place:
            write_field(writer, message.get(name, default))
        if is_flexible:
            given = [each for each in tagged if message.get(each[0]) not in (each[1], None, [])]
            writer.varint(len(given))
            for name, _, tag, write_field in given:
                content = Writer()
                write_field(content, message[name])
                data = b"".join(content.buffers())
                writer.varint(tag)
                writer.varint(len(data))
                writer.append(data)

    return write


def _field_writer(field: FieldDefinition, version: int, *, is_flexible: bool) -> _Write:
    return _coder(_WRITERS, field, version, is_flexible=is_flexible)


def _array_writer(element: _Write, *, is_flexible: bool) -> _Write:
    length = _length_writer(INT32, is_flexible=is_flexible)

    def write(writer: Writer, values: Sequence[Any] | None) -> None:
        length(writer, -1 if values is None else len(values))
        for value in values or ():
            element(writer, value)

    return write


def _nullable_struct_writer(structure: _Write) -> _Write:
    def write(writer: Writer, value: Message | None) -> None:
        writer.append(b"\xff" if value is None else b"\x01")
        if value is not None:
            structure(writer, value)

    return write


def _length_writer(form: struct.Struct, *, is_flexible: bool) -> Callable[[Writer, int], None]:
    if is_flexible:
        return lambda writer, size: writer.varint(size + 1)
    return lambda writer, size: writer.append(form.pack(size))


def _value_writer(kind: str, *, is_flexible: bool) -> _Write:
    if kind in _NUMBERS:
        pack = _NUMBERS[kind].pack
        return lambda writer, value: writer.append(pack(value))
    if kind == "bool":
        return lambda writer, value: writer.append(b"\x01" if value else b"\x00")
    if kind == "uuid":
        return lambda writer, value: writer.append(uuid_bytes(value or ZERO_UUID))
    length = _length_writer(INT16 if kind == "string" else INT32, is_flexible=is_flexible)

    def write_string(writer: Writer, value: str | None) -> None:
        write_bytes(writer, None if value is None else value.encode())

    def write_bytes(writer: Writer, value: bytes | None) -> None:
        length(writer, -1 if value is None else len(value))
        if value:
            writer.append(value)

    def write_records(writer: Writer, value: bytes | None) -> None:
        length(writer, -1 if value is None else len(value))
        if value:
            writer.attach(value)

    writers: dict[str, _Write] = {"string": write_string, "bytes": write_bytes, "records": write_records}
    return writers[kind]


_WRITERS: Final[_Coders[_Write]] = _Coders(
    value=_value_writer, structure=_struct_writer, array=_array_writer, nullable_structure=_nullable_struct_writer
)
