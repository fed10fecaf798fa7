"""Reads the docstrings of structs and of their fields, for generated schemas and pages."""

import inspect
import re
from typing import Final

_ATTRIBUTE: Final = re.compile(r"^    (\w+): (.*)$")


def first_paragraph(kind: type) -> str:
    """Returns the first paragraph of a class's docstring, in one line."""
    return _one_line((inspect.getdoc(kind) or "").partition("\n\n")[0])


def field_meanings(struct: type) -> dict[str, str]:
    """Returns the meaning of each field by the docstrings of a struct and its bases, each in one line."""
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
    return {name: _one_line(text) for name, text in found.items()}


def _one_line(text: str) -> str:
    return " ".join(text.replace("``", "`").split())
