"""Numbers in as many bytes as they need, seven bits in each, the lowest first (Kafka's ``ByteUtils``)."""

from laststand.emulator.storage.filesystem import Buffer


def varint(value: int) -> bytes:
    """Returns a number that is not negative (``writeUnsignedVarint``)."""
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def zig_zag(value: int) -> bytes:
    """Returns a number that is not negative in zig-zag form, as records have their numbers (``writeVarint``)."""
    return varint(value << 1)


def zig_zag_at(content: Buffer, position: int) -> tuple[int, int]:
    """Returns a number in zig-zag form, and the position after it (``readVarint``).

    Raises:
        IndexError: the content ends before.
    """
    value = shift = 0
    while True:
        byte = content[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value >> 1 ^ -(value & 1), position
        shift += 7
