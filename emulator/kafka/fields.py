"""Reads the fields of Kafka's flexible messages one after the other (KIP-482).

::

    compact string | bytes   unsigned varint length + 1 (0 is null) | bytes
    compact array            unsigned varint count + 1 (0 is null)  | items
    tagged fields            unsigned varint count | { unsigned varint tag | unsigned varint size | bytes }
"""

import struct
from collections.abc import Callable
from typing import Final, TypeVar

from laststand.emulator.core.errors import EmulatorError
from laststand.emulator.core.uuid_text import uuid_text

ItemT = TypeVar("ItemT")

_INT8: Final = struct.Struct(">b")
_INT16: Final = struct.Struct(">h")
_UINT16: Final = struct.Struct(">H")
_INT32: Final = struct.Struct(">i")
_INT64: Final = struct.Struct(">q")
_UUID_BYTES: Final = 16
_VARINT_BYTES_MAX: Final = 10


class FieldError(EmulatorError):
    """Bytes that are not the message that they should be."""


class FieldReader:
    """Reads a message from its start; each method reads the next field.

    Raises:
        FieldError: there are fewer bytes than the field has.
    """

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def int8(self) -> int:
        """Reads a signed byte."""
        return self._number(_INT8)

    def int16(self) -> int:
        """Reads a signed number of two bytes."""
        return self._number(_INT16)

    def uint16(self) -> int:
        """Reads an unsigned number of two bytes."""
        return self._number(_UINT16)

    def int32(self) -> int:
        """Reads a signed number of four bytes."""
        return self._number(_INT32)

    def int64(self) -> int:
        """Reads a signed number of eight bytes."""
        return self._number(_INT64)

    def boolean(self) -> bool:
        """Reads a byte that is 0 or not."""
        return self._number(_INT8) != 0

    def varint(self) -> int:
        """Reads an unsigned number in as many bytes as it needs."""
        value = 0
        for shift in range(0, 7 * _VARINT_BYTES_MAX, 7):
            byte = self._bytes(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise FieldError(f"a number has more than {_VARINT_BYTES_MAX} bytes")

    def uuid(self) -> str:
        """Reads a UUID, and returns it as Kafka prints it: 22 characters of URL-safe base64."""
        return uuid_text(self._bytes(_UUID_BYTES))

    def string(self) -> str | None:
        """Reads a compact string; ``None`` is null."""
        size = self.varint()
        if size == 0:
            return None
        try:
            return self._bytes(size - 1).decode()
        except UnicodeDecodeError as error:
            raise FieldError(f"a string is no UTF-8: {error.reason}") from None

    def text(self) -> str:
        """Reads a compact string that is not null."""
        found = self.string()
        if found is None:
            raise FieldError("a string is null")
        return found

    def array(self, read: Callable[[], ItemT]) -> tuple[ItemT, ...]:
        """Reads a compact array, each item by ``read``; null is empty."""
        count = self.varint() - 1
        if count > len(self._content):
            raise FieldError(f"an array of {count} items in {len(self._content)} bytes")
        return tuple([read() for _ in range(count)])

    def tagged(self) -> "dict[int, FieldReader]":
        """Reads the tagged fields that end a message: a reader of each, by its tag."""
        return {self.varint(): FieldReader(self._bytes(self.varint())) for _ in range(self.varint())}

    def _number(self, kind: struct.Struct) -> int:
        value: int = kind.unpack(self._bytes(kind.size))[0]
        return value

    def _bytes(self, size: int) -> bytes:
        end = self._at + size
        if end > len(self._content):
            raise FieldError(f"{size} bytes expected at {self._at} of {len(self._content)}")
        found = self._content[self._at : end]
        self._at = end
        return found
