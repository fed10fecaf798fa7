"""Reads the docstrings of structs and of their fields, for generated schemas and pages."""

import inspect
import re
from typing import Final

_ATTRIBUTE: Final = re.compile(r"^    (\w+): (.*)$")


def first_paragraph(kind: type) -> str:
    """Returns the first paragraph of a class's docstring, in one line."""
    return _one_line((inspect.getdoc(kind) or "").partition("\n\n")[0])


def field_meanings(struct: type) -> dict[str, str]:
    """Returns the meaning of each field, as it is named in files, by the docstrings of a struct and its bases."""
    found: dict[str, str] = {}
    for kind in reversed(struct.__mro__):
        _, _, attributes = (inspect.cleandoc(kind.__doc__ or "")).partition("Attributes:\n")
        name = None
        for line in attributes.splitlines():
            if entry := _ATTRIBUTE.match(line):
                name = entry[1]
                found[name] = entry[2]
            elif name is not None and line.strip():
                found[name] += f" {line}"
    written = dict(zip(_names(struct, "__struct_fields__"), _names(struct, "__struct_encode_fields__"), strict=True))
    return {written.get(name, name): _one_line(text) for name, text in found.items()}


def _names(struct: type, attribute: str) -> tuple[str, ...]:
    return getattr(struct, attribute, ())


def _one_line(text: str) -> str:
    return " ".join(text.replace("``", "`").split())
