"""Kafka's messages, by API: ``messages.txt`` read into field definitions.

A message is a dictionary of values by Kafka's field names; structures are dictionaries, arrays are lists.
"""

import functools
import re
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

Message: TypeAlias = dict[str, Any]
"""Values by field name: int, bool, str, bytes, lists, messages, or ``None``; a UUID is its 22 characters of base64."""

_FILE: Final = Path(__file__).with_name("messages.txt")
_FIELD: Final = re.compile(r"(?P<name>\w+)(?::(?P<array>\[\])?(?P<type>\w+)|(?P<open>[\[{]))")
_TAIL: Final = re.compile(
    r"(?P<null>\?(?P<null_versions>\d+\+)?)?(?: ?#(?P<tag>\d+))?"
    r"(?: ?@(?P<versions>\d+(?:-\d+|\+)?))?(?:=(?P<default>[\w.-]+))?(?:, )?"
)
_ZERO: Final[dict[str, Any]] = {"string": "", "bytes": b"", "records": b"", "bool": False, "uuid": None}
_LAST: Final = 0x7FFF


class VersionRange(NamedTuple):
    """Versions of a message, both inclusive."""

    first: int
    last: int

    @classmethod
    def parse(cls, text: str) -> "VersionRange":
        """Reads ``3``, ``3+``, ``3-5`` or ``none``."""
        if text == "none":
            return NO_VERSIONS
        first, _, last = text.rstrip("+").partition("-")
        return cls(int(first), _LAST if text.endswith("+") else int(last or first))

    def __contains__(self, version: object) -> bool:
        """Returns whether a version is in the range."""
        return isinstance(version, int) and self.first <= version <= self.last


ALL_VERSIONS: Final = VersionRange(0, _LAST)
NO_VERSIONS: Final = VersionRange(_LAST, _LAST)


class FieldDefinition(NamedTuple):
    """A field of a message.

    Attributes:
        name: Kafka's.
        type: of the field, or of an array's elements; ``""`` for a structure.
        is_array: whether it has any number of values.
        fields: of a structure.
        nullable: versions in which it may be absent by a length, or a first byte, of -1.
        tag: number of a tagged field; ``None`` for a field at a fixed place.
        versions: in which the field exists.
        default: its value if it is missing.
    """

    name: str
    type: str
    is_array: bool
    fields: tuple["FieldDefinition", ...]
    nullable: VersionRange
    tag: int | None
    versions: VersionRange
    default: Any


class Api(NamedTuple):
    """A request and its response.

    Attributes:
        key: Kafka's number.
        name: Kafka's.
        versions: that Kafka 4.2 has.
        flexible: versions with compact lengths and tagged fields.
        request: fields.
        response: fields.
    """

    key: int
    name: str
    versions: VersionRange
    flexible: VersionRange
    request: tuple[FieldDefinition, ...]
    response: tuple[FieldDefinition, ...]


@functools.cache
def all_apis() -> dict[int, Api]:
    """Returns the APIs by key."""
    blocks = (block.splitlines() for block in _FILE.read_text(encoding="utf-8").split("\n\n"))
    apis = (_api(lines) for lines in blocks if not lines[0].startswith("#"))
    return {api.key: api for api in apis}


@functools.cache
def api_named(name: str) -> Api:
    """Returns an API by its name.

    Raises:
        KeyError: there is no API of that name.
    """
    return {api.name: api for api in all_apis().values()}[name]


def _api(lines: list[str]) -> Api:
    key, name, versions, flexible = lines[0].split()
    return Api(
        key=int(key),
        name=name,
        versions=VersionRange.parse(versions),
        flexible=VersionRange.parse(flexible),
        request=parse_fields(lines[1]),
        response=parse_fields(lines[2]),
    )


def parse_fields(text: str) -> tuple[FieldDefinition, ...]:
    """Reads the fields of a message.

    Raises:
        ValueError: the text is not in the form of ``messages.txt``.
    """
    fields, position = _parse_fields(text, 0)
    if position != len(text):
        raise ValueError(f"no field at {text[position:]!r}")
    return fields


def _parse_fields(text: str, position: int) -> tuple[tuple[FieldDefinition, ...], int]:
    fields: list[FieldDefinition] = []
    while position < len(text) and text[position] not in "]}":
        head = _FIELD.match(text, position)
        if head is None:
            raise ValueError(f"no field at {text[position:]!r}")
        position = head.end()
        nested: tuple[FieldDefinition, ...] = ()
        if head["open"] is not None:
            nested, position = _parse_fields(text, position)
            position += 1
        tail = _TAIL.match(text, position)
        assert tail is not None, "every part of it is optional"
        position = tail.end()
        is_array = head["array"] is not None or head["open"] == "["
        kind = head["type"] or ""
        fields.append(
            FieldDefinition(
                name=head["name"],
                type=kind,
                is_array=is_array,
                fields=nested,
                nullable=_nullable(tail["null"], tail["null_versions"]),
                tag=None if tail["tag"] is None else int(tail["tag"]),
                versions=ALL_VERSIONS if tail["versions"] is None else VersionRange.parse(tail["versions"]),
                default=_default(kind, tail["default"], is_array=is_array, is_nullable=tail["null"] is not None),
            )
        )
    return tuple(fields), position


def _nullable(mark: str | None, versions: str | None) -> VersionRange:
    if mark is None:
        return NO_VERSIONS
    return ALL_VERSIONS if versions is None else VersionRange.parse(versions)


def _default(kind: str, text: str | None, *, is_array: bool, is_nullable: bool) -> Any:
    if is_array:
        return ()
    if text is None:
        return None if is_nullable or not kind else _ZERO.get(kind, 0)
    if kind == "bool":
        return text.lower() == "true"
    return int(text, 0)
