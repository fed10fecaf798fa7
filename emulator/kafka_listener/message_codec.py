"""Kafka's messages as bytes, in both directions, for every API of ``messages.txt``.

Bytes that others sent are read with bounds: a length or a count that the rest of the frame cannot hold is an error, so
that no frame makes this process reserve more memory than it has. Unknown tagged fields are skipped.
"""

import functools
import struct
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from laststand.emulator.core.uuid_text import uuid_bytes, uuid_text
from laststand.emulator.kafka_listener.messages import FieldDefinition, Message, all_apis

ZERO_UUID: Final = "A" * 22
"""Kafka's text of the UUID that stands for none."""

Buffers: TypeAlias = list[bytes | memoryview]
"""Parts of a message, in order: record batches are not copied."""

_VARINT_BYTES_MAX: Final = 5


class MalformedMessageError(Exception):
    """Bytes that are no message of their API and version; the text says why."""


class Reader:
    """Reads values from a frame, front to back.

    Args:
        data: the whole frame.
    """

    __slots__ = ("data", "position")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0

    def number(self, form: struct.Struct) -> Any:
        """Reads a number.

        Raises:
            MalformedMessageError: the frame ends before it does; likewise in the other methods.
        """
        try:
            (value,) = form.unpack_from(self.data, self.position)
        except struct.error:
            raise MalformedMessageError("the message ends too soon") from None
        self.position += form.size
        return value

    def take(self, size: int) -> bytes:
        """Reads so many bytes."""
        end = self.position + size
        if size < 0 or end > len(self.data):
            raise MalformedMessageError(f"{size} bytes are announced, and {len(self.data) - self.position} follow")
        value = self.data[self.position : end]
        self.position = end
        return value

    def varint(self) -> int:
        """Reads an unsigned number of variable length."""
        value = 0
        for shift in range(0, 7 * _VARINT_BYTES_MAX, 7):
            (byte,) = self.take(1)
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise MalformedMessageError("a number of variable length has no end")

    def count(self, size: int) -> int:
        """Checks how many elements are announced, each of which takes a byte at least."""
        if size > len(self.data) - self.position:
            raise MalformedMessageError(f"{size} elements are announced in {len(self.data) - self.position} bytes")
        return size


class Writer:
    """Collects the parts of a message."""

    __slots__ = ("_done", "_open")

    def __init__(self) -> None:
        self._done: Buffers = []
        self._open = bytearray()

    def put(self, data: bytes) -> None:
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
        """Returns what was written."""
        return [*self._done, bytes(self._open)]


_Read: TypeAlias = Callable[[Reader], Any]
_Write: TypeAlias = Callable[[Writer, Any], None]

_NUMBERS: Final = {
    name: struct.Struct(f">{form}")
    for name, form in (
        ("int8", "b"),
        ("int16", "h"),
        ("uint16", "H"),
        ("int32", "i"),
        ("uint32", "I"),
        ("int64", "q"),
        ("float64", "d"),
    )
}
_NEVER_NULL: Final = frozenset({*_NUMBERS, "bool", "uuid"})
_INT8, _INT16, _INT32 = _NUMBERS["int8"], _NUMBERS["int16"], _NUMBERS["int32"]


class MessageCodec:
    """Reads and writes one message of one version.

    Args:
        fields: of the message.
        version: of it.
        is_flexible: whether lengths are compact and structures end with tagged fields.
    """

    def __init__(self, fields: Sequence[FieldDefinition], *, version: int, is_flexible: bool) -> None:
        self._read = _struct_reader(fields, version, is_flexible=is_flexible)
        self._write = _struct_writer(fields, version, is_flexible=is_flexible)

    def read(self, reader: Reader) -> Message:
        """Reads a message; fields that the version has not, or that are left out, have their defaults.

        Raises:
            MalformedMessageError: the bytes are none.
        """
        message: Message = self._read(reader)
        return message

    def write(self, message: Message, writer: Writer) -> None:
        """Writes a message; fields that it lacks have their defaults, fields that the version has not are left out."""
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

    def read(reader: Reader) -> Message:
        message: Message = {}
        for name, default in defaults:
            message[name] = default
        for name, read_field in in_place:
            message[name] = read_field(reader)
        if is_flexible:
            for _ in range(reader.count(reader.varint())):
                known = tagged.get(reader.varint())
                content = Reader(reader.take(reader.varint()))
                if known is not None:
                    message[known[0]] = known[1](content)
        return message

    return read


def _field_reader(field: FieldDefinition, version: int, *, is_flexible: bool) -> _Read:
    read = _any_field_reader(field, version, is_flexible=is_flexible)
    if field.is_nullable or (field.type in _NEVER_NULL and not field.is_array):
        return read

    def read_value(reader: Reader) -> Any:
        value = read(reader)
        if value is None:
            raise MalformedMessageError(f"{field.name} is null")
        return value

    return read_value


def _any_field_reader(field: FieldDefinition, version: int, *, is_flexible: bool) -> _Read:
    if not field.is_array:
        if field.type:
            return _value_reader(field.type, is_flexible=is_flexible)
        structure = _struct_reader(field.fields, version, is_flexible=is_flexible)
        return _nullable_struct_reader(structure) if field.is_nullable else structure
    element = (
        _value_reader(field.type, is_flexible=is_flexible)
        if field.type
        else _struct_reader(field.fields, version, is_flexible=is_flexible)
    )
    length = _length_reader(_INT32, is_flexible=is_flexible)

    def read(reader: Reader) -> list[Any] | None:
        size = length(reader)
        return None if size < 0 else [element(reader) for _ in range(reader.count(size))]

    return read


def _nullable_struct_reader(structure: _Read) -> _Read:
    return lambda reader: None if reader.number(_INT8) < 0 else structure(reader)


def _length_reader(form: struct.Struct, *, is_flexible: bool) -> Callable[[Reader], int]:
    return (lambda reader: reader.varint() - 1) if is_flexible else (lambda reader: int(reader.number(form)))


def _value_reader(kind: str, *, is_flexible: bool) -> _Read:
    if kind in _NUMBERS:
        form = _NUMBERS[kind]
        return lambda reader: reader.number(form)
    if kind == "bool":
        return lambda reader: reader.number(_INT8) != 0
    if kind == "uuid":
        return lambda reader: uuid_text(reader.take(16))
    length = _length_reader(_INT16 if kind == "string" else _INT32, is_flexible=is_flexible)

    def read_bytes(reader: Reader) -> bytes | None:
        size = length(reader)
        return None if size < 0 else reader.take(size)

    def read_string(reader: Reader) -> str | None:
        value = read_bytes(reader)
        try:
            return None if value is None else value.decode()
        except UnicodeDecodeError:
            raise MalformedMessageError("a text is not UTF-8") from None

    return read_string if kind == "string" else read_bytes


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
                writer.put(data)

    return write


def _field_writer(field: FieldDefinition, version: int, *, is_flexible: bool) -> _Write:
    if not field.is_array:
        if field.type:
            return _value_writer(field.type, is_flexible=is_flexible)
        structure = _struct_writer(field.fields, version, is_flexible=is_flexible)
        return _nullable_struct_writer(structure) if field.is_nullable else structure
    element = (
        _value_writer(field.type, is_flexible=is_flexible)
        if field.type
        else _struct_writer(field.fields, version, is_flexible=is_flexible)
    )
    length = _length_writer(_INT32, is_flexible=is_flexible)

    def write(writer: Writer, values: Sequence[Any] | None) -> None:
        length(writer, -1 if values is None else len(values))
        for value in values or ():
            element(writer, value)

    return write


def _nullable_struct_writer(structure: _Write) -> _Write:
    def write(writer: Writer, value: Message | None) -> None:
        writer.put(b"\xff" if value is None else b"\x01")
        if value is not None:
            structure(writer, value)

    return write


def _length_writer(form: struct.Struct, *, is_flexible: bool) -> Callable[[Writer, int], None]:
    if is_flexible:
        return lambda writer, size: writer.varint(size + 1)
    return lambda writer, size: writer.put(form.pack(size))


def _value_writer(kind: str, *, is_flexible: bool) -> _Write:
    if kind in _NUMBERS:
        pack = _NUMBERS[kind].pack
        return lambda writer, value: writer.put(pack(value))
    if kind == "bool":
        return lambda writer, value: writer.put(b"\x01" if value else b"\x00")
    if kind == "uuid":
        return lambda writer, value: writer.put(uuid_bytes(value or ZERO_UUID))
    length = _length_writer(_INT16 if kind == "string" else _INT32, is_flexible=is_flexible)

    def write_string(writer: Writer, value: str | None) -> None:
        write_bytes(writer, None if value is None else value.encode())

    def write_bytes(writer: Writer, value: bytes | None) -> None:
        length(writer, -1 if value is None else len(value))
        if value:
            writer.put(value)

    def write_records(writer: Writer, value: bytes | None) -> None:
        length(writer, -1 if value is None else len(value))
        if value:
            writer.attach(value)

    writers: dict[str, _Write] = {"string": write_string, "bytes": write_bytes, "records": write_records}
    return writers[kind]
