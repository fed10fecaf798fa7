"""The JSON Schema of ``verdict.json``, made from the structs; ``verdict.schema.json`` beside this file is its text.

Its version is that of ``VerdictReport``. Fields are added within a version, so a reader has to pass over fields that it
does not know.
"""

from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Final, get_args, get_type_hints

import msgspec

from emulator.core.struct_docs import field_meanings, first_paragraph
from emulator.verification.verdict import VERSION, VerdictReport

SCHEMA_FILE: Final = Path(__file__).with_name("verdict.schema.json")

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_ID: Final = f"https://example.org/laststand/schemas/verdict-{VERSION}.json"

Document = dict[str, object]


def schema_text() -> str:
    """Returns the schema as text."""
    return msgspec.json.format(msgspec.json.encode(verdict_schema()), indent=2).decode() + "\n"


def verdict_schema() -> Document:
    """Returns the schema."""
    (reference,), components = msgspec.json.schema_components((VerdictReport,), ref_template="#/$defs/{name}")
    structs = {struct.__name__: struct for struct in structs_of(VerdictReport)}
    definitions: dict[str, Document] = {}
    for name, found in sorted(components.items()):
        definition: Document = {**found}
        if name in structs:
            definition["description"] = first_paragraph(structs[name])
            definition["properties"] = _described(found["properties"], field_meanings(structs[name]))
        definitions[name] = definition
    properties = definitions[VerdictReport.__name__]["properties"]
    assert isinstance(properties, dict)
    properties["version"] = {**properties["version"], "const": VERSION}
    return {"$schema": _DIALECT, "$id": _ID, "title": "verdict.json of Laststand", **reference, "$defs": definitions}


def structs_of(struct: type[msgspec.Struct]) -> tuple[type[msgspec.Struct], ...]:
    """Returns a struct and those that its fields hold, each once, in the order in which they are met."""
    found: dict[type[msgspec.Struct], None] = {struct: None}
    for hint in get_type_hints(struct).values():
        for kind in _types_in(hint):
            if issubclass(kind, msgspec.Struct):
                found.update(dict.fromkeys(structs_of(kind)))
    return tuple(found)


def enums_of(struct: type[msgspec.Struct]) -> tuple[type[Enum], ...]:
    """Returns the enums that a struct and what it holds have values of, by name."""
    hints = (hint for each in structs_of(struct) for hint in get_type_hints(each).values())
    found = {kind for hint in hints for kind in _types_in(hint) if issubclass(kind, Enum)}
    return tuple(sorted(found, key=lambda kind: kind.__name__))


def _types_in(hint: object) -> Iterator[type]:
    if isinstance(hint, type):
        yield hint
    for argument in get_args(hint):
        yield from _types_in(argument)


def _described(properties: dict[str, Document], meanings: dict[str, str]) -> dict[str, Document]:
    return {
        name: {**found, "description": meanings[name]} if name in meanings else found
        for name, found in properties.items()
    }
