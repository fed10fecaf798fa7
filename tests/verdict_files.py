"""Comparison of written verdicts with the published schema."""

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Final

import fastjsonschema
import msgspec
from jsonschema import Draft202012Validator

from laststand.emulator.verification.schemas import SCHEMA_FILE
from laststand.emulator.verification.verdict.report import VerdictReport

_DRAFT_7: Final = "http://json-schema.org/draft-07/schema#"
"""Has all keywords of the schema, with the same meaning, and can be compiled: that answers in a tenth of the time."""


@cache
def validator() -> Draft202012Validator:
    schema = msgspec.json.decode(SCHEMA_FILE.read_bytes())
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


@cache
def _raise_unless_valid() -> Callable[[object], object]:
    schema = msgspec.json.decode(SCHEMA_FILE.read_bytes())
    compiled: Callable[[object], object] = fastjsonschema.compile(schema | {"$schema": _DRAFT_7}, use_default=False)
    return compiled


def is_valid(document: object) -> bool:
    """Returns whether the schema allows a verdict, as JSON has it."""
    try:
        _raise_unless_valid()(document)
    except fastjsonschema.JsonSchemaException:
        return False
    return True


def complaints(document: object) -> Iterator[str]:
    """Yields what the schema says against a verdict, as JSON has it."""
    if is_valid(document):
        return
    for error in validator().iter_errors(document):
        yield f"{error.json_path}: {error.message}"


def check_report(report: VerdictReport) -> None:
    """Fails where the schema does not allow what a report is written as."""
    assert list(complaints(msgspec.json.decode(msgspec.json.encode(report)))) == []


def check_files(directory: Path) -> Iterator[str]:
    """Yields what the schema says against each ``verdict.json`` below a directory; an empty one only marks a run."""
    for path in sorted(directory.rglob("verdict.json")):
        if content := path.read_bytes():
            for complaint in complaints(msgspec.json.decode(content)):
                yield f"{path}: {complaint}"
