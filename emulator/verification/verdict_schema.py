"""The JSON Schemas of ``verdict.json`` and ``story.json``, made from the structs; their texts are beside this file.

Their versions are those of ``VerdictReport`` and ``RunStory``. Fields are added within a version, so a reader has to
pass over fields that it does not know.
"""

from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Final, get_args, get_type_hints

import msgspec

from emulator.core.struct_docs import field_meanings, first_paragraph
from emulator.verification.run_story import STORY_VERSION, RunStory
from emulator.verification.verdict import VERSION, VerdictReport

SCHEMA_FILE: Final = Path(__file__).with_name("verdict.schema.json")
STORY_SCHEMA_FILE: Final = Path(__file__).with_name("story.schema.json")

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_ID: Final = "https://example.org/laststand/schemas"

Document = dict[str, object]


def schema_text() -> str:
    """Returns the schema of verdicts as text."""
    return _text(verdict_schema())


def story_schema_text() -> str:
    """Returns the schema of stories as text."""
    return _text(_schema(RunStory, STORY_VERSION, name="story"))


def verdict_schema() -> Document:
    """Returns the schema of verdicts."""
    return _schema(VerdictReport, VERSION, name="verdict")


def _text(schema: Document) -> str:
    return msgspec.json.format(msgspec.json.encode(schema), indent=2).decode() + "\n"


def _schema(root: type[msgspec.Struct], version: int, *, name: str) -> Document:
    (reference,), components = msgspec.json.schema_components((root,), ref_template="#/$defs/{name}")
    structs = {struct.__name__: struct for struct in structs_of(root)}
    definitions: dict[str, Document] = {}
    for kind, found in sorted(components.items()):
        definition: Document = {**found}
        if kind in structs:
            definition["description"] = first_paragraph(structs[kind])
            if "properties" in found:
                definition["properties"] = _described(found["properties"], field_meanings(structs[kind]))
        definitions[kind] = definition
    properties = definitions[root.__name__]["properties"]
    assert isinstance(properties, dict)
    properties["version"] = {**properties["version"], "const": version}
    return {
        "$schema": _DIALECT,
        "$id": f"{_ID}/{name}-{version}.json",
        "title": f"{name}.json of Laststand",
        **reference,
        "$defs": definitions,
    }


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
