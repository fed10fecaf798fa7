"""Comparison of written verdicts with the published schema."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import msgspec
from jsonschema import Draft202012Validator

from laststand.emulator.verification.schemas import SCHEMA_FILE
from laststand.emulator.verification.verdict.report import VerdictReport


@cache
def validator() -> Draft202012Validator:
    schema = msgspec.json.decode(SCHEMA_FILE.read_bytes())
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def complaints(document: object) -> Iterator[str]:
    """Yields what the schema says against a verdict, as JSON has it."""
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
