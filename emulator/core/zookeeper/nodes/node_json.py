"""JSON as Kafka reads it from nodes: text that is not JSON reads as ``None``, JSON of another shape is an error."""

from typing import TypeAlias

import msgspec

from laststand.emulator.core.zookeeper.errors import MalformedNodeError

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"
JsonObject: TypeAlias = dict[str, JsonValue]


def encode(content: JsonObject) -> bytes:
    """Writes a node's content."""
    return msgspec.json.encode(content)


def decode_object(data: bytes, *, what: str) -> JsonObject | None:
    """Reads a node's content; ``None`` if it is no JSON.

    Raises:
        MalformedNodeError: the content is JSON, but not an object.
    """
    try:
        content: JsonValue = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    if not isinstance(content, dict):
        raise MalformedNodeError(what=what, reason="not an object")
    return content


def integer(content: JsonObject, key: str, *, what: str) -> int:
    """Returns a mandatory number.

    Raises:
        MalformedNodeError: the field is missing, or not a number.
    """
    value = content.get(key)
    if not isinstance(value, int) or isinstance(value, bool):
        raise MalformedNodeError(what=what, reason=f"{key} is {value!r}, not a number")
    return value


def integers(content: JsonObject, key: str, *, what: str) -> tuple[int, ...]:
    """Returns a mandatory list of numbers.

    Raises:
        MalformedNodeError: the field is missing, or not a list of numbers.
    """
    return number_list(content.get(key), what=f"{what}: {key}")


def number_list(value: JsonValue, *, what: str) -> tuple[int, ...]:
    """Returns a list of numbers.

    Raises:
        MalformedNodeError: the value is not a list of numbers.
    """
    if not isinstance(value, list):
        raise MalformedNodeError(what=what, reason=f"{value!r} is no list")
    numbers = tuple(item for item in value if isinstance(item, int) and not isinstance(item, bool))
    if len(numbers) != len(value):
        raise MalformedNodeError(what=what, reason=f"{value!r} is no list of numbers")
    return numbers
