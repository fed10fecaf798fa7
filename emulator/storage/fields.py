"""Reads the fields of Kafka's messages in order, with bounds; writes a compact string.

Flexible messages (KIP-482) have compact lengths, and tagged fields at the end of each structure::

    compact string | bytes   unsigned varint length + 1 (0 is null) | bytes
    compact array            unsigned varint count + 1 (0 is null)  | items
    tagged fields            unsigned varint count | { unsigned varint tag | unsigned varint size | bytes }

A length or a count that the rest of the message cannot hold is an error, so that no message makes this process reserve
more memory than it has.
"""

import struct
from collections.abc import Callable
from typing import Any, Final, TypeVar

from laststand.emulator.core.errors import EmulatorError
from laststand.emulator.core.uuid_text import uuid_text
from laststand.emulator.storage.varint import varint

ItemT = TypeVar("ItemT")

INT8: Final = struct.Struct(">b")
INT16: Final = struct.Struct(">h")
UINT16: Final = struct.Struct(">H")
INT32: Final = struct.Struct(">i")
INT64: Final = struct.Struct(">q")

_NULL: Final = b"\x00"
_UUID_BYTES: Final = 16
_VARINT_BYTES_MAX: Final = 5


class FieldError(EmulatorError):
    """Bytes are not the expected message; the text says why."""


def compact_text(text: str | None) -> bytes:
    """Returns a compact string."""
    if text is None:
        return _NULL
    content = text.encode()
    return varint(len(content) + 1) + content


class FieldReader:
    """Reads a message from its start; each method reads the next field.

    Args:
        content: the whole message; of a view, fields of bytes are views, too.

    Attributes:
        position: of the next field.

    Raises:
        FieldError: there are fewer bytes than the field has.
    """

    __slots__ = ("_content", "position")

    def __init__(self, content: bytes | memoryview) -> None:
        self._content: bytes = content  # type: ignore[assignment]  # a view is read as bytes are
        self.position = 0

    def number(self, form: struct.Struct) -> Any:
        """Reads a number."""
        try:
            (value,) = form.unpack_from(self._content, self.position)
        except struct.error:
            raise self._too_short(form.size) from None
        self.position += form.size
        return value

    def numbers(self, form: struct.Struct) -> tuple[Any, ...]:
        """Reads several consecutive numbers."""
        try:
            values = form.unpack_from(self._content, self.position)
        except struct.error:
            raise self._too_short(form.size) from None
        self.position += form.size
        return values

    def int8(self) -> int:
        """Reads a signed byte."""
        return int(self.number(INT8))

    def int16(self) -> int:
        """Reads a signed number of two bytes."""
        return int(self.number(INT16))

    def uint16(self) -> int:
        """Reads an unsigned number of two bytes."""
        return int(self.number(UINT16))

    def int32(self) -> int:
        """Reads a signed number of four bytes."""
        return int(self.number(INT32))

    def int64(self) -> int:
        """Reads a signed number of eight bytes."""
        return int(self.number(INT64))

    def boolean(self) -> bool:
        """Reads a byte that is 0 or not."""
        return bool(self.number(INT8))

    def varint(self) -> int:
        """Reads an unsigned number in as many bytes as it needs, five at most (Kafka's ``readUnsignedVarint``)."""
        if self.position < len(self._content) and (byte := self._content[self.position]) < 0x80:  # as most are
            self.position += 1
            return byte
        value = shift = 0
        for byte in self._content[self.position : self.position + _VARINT_BYTES_MAX]:
            self.position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
        raise FieldError("a number of variable length has no end")

    def uuid(self) -> str:
        """Reads a UUID, and returns it in Kafka's text form."""
        return uuid_text(self.raw_bytes(_UUID_BYTES))

    def raw_bytes(self, size: int) -> bytes:
        """Reads a number of bytes."""
        end = self.position + size
        if size < 0 or end > len(self._content):
            raise self._too_short(size)
        value = self._content[self.position : end]
        self.position = end
        return value

    def utf8(self, size: int) -> str:
        """Reads a text of a number of bytes."""
        try:
            return str(self.raw_bytes(size), "utf-8")
        except UnicodeDecodeError as error:
            raise FieldError(f"a text is not UTF-8: {error.reason}") from None

    def string(self) -> str | None:
        """Reads a compact string; ``None`` is null."""
        size = self.varint()
        return None if size == 0 else self.utf8(size - 1)

    def text(self) -> str:
        """Reads a compact string that is not null."""
        found = self.string()
        if found is None:
            raise FieldError("a string is null")
        return found

    def count(self, size: int) -> int:
        """Returns a number of elements that was read, after checking that enough bytes can follow: each has a byte."""
        left = len(self._content) - self.position
        if size > left:
            raise FieldError(f"{size} elements are announced in {left} bytes")
        return size

    def array(self, read: Callable[[], ItemT]) -> tuple[ItemT, ...]:
        """Reads a compact array, each item by ``read``; null is empty."""
        return tuple([read() for _ in range(self.count(self.varint() - 1))])

    def tagged(self) -> "list[tuple[int, FieldReader]]":
        """Reads the tagged fields that end a structure: tag and content of each; Kafka reads a repeated tag again."""
        count = self.varint()
        if count == 0:
            return []
        return [(self.varint(), FieldReader(self.raw_bytes(self.varint()))) for _ in range(self.count(count))]

    def _too_short(self, size: int) -> FieldError:
        return FieldError(f"{size} bytes expected at {self.position} of {len(self._content)}")
