"""JSON Schemas of published file formats, generated from their structs and docstrings."""

from collections.abc import Iterator
from enum import Enum
from typing import Final, get_args, get_type_hints

import msgspec

from laststand.emulator.core.struct_docs import field_meanings, first_paragraph

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_ID: Final = "https://example.org/laststand/schemas"

Document = dict[str, object]


def struct_schema_text(root: type[msgspec.Struct], version: int, *, name: str) -> str:
    """Returns the schema of ``struct_schema`` as text."""
    schema = struct_schema(root, version, name=name)
    return msgspec.json.format(msgspec.json.encode(schema), indent=2).decode() + "\n"


def struct_schema(root: type[msgspec.Struct], version: int, *, name: str) -> Document:
    """Returns the JSON Schema of a file format.

    Args:
        root: the format's struct, which has a field ``version``.
        version: of the format.
        name: of a file in that format, without its suffix.
    """
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
    """Returns a struct and all structs in its fields, each once, in the order of their first occurrence."""
    found: dict[type[msgspec.Struct], None] = {struct: None}
    for hint in get_type_hints(struct).values():
        for kind in _types_in(hint):
            if issubclass(kind, msgspec.Struct):
                found.update(dict.fromkeys(structs_of(kind)))
    return tuple(found)


def enums_of(struct: type[msgspec.Struct]) -> tuple[type[Enum], ...]:
    """Returns the enums in the fields of a struct and its nested structs, by name."""
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
