"""The published schema of verdicts allows what is written, and nothing that only looks like it."""

import json
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path

import msgspec
import pytest

from docs.generate import LOSS_EXAMPLE
from laststand.emulator.core.struct_docs import field_meanings
from laststand.emulator.core.struct_schema import enums_of, structs_of
from laststand.emulator.verification.doubts.doubt import Doubt
from laststand.emulator.verification.schemas import SCHEMA_FILE
from laststand.emulator.verification.verdict.acks_comparison import AcksComparison, AcksMeasure, Return
from laststand.emulator.verification.verdict.forms import write_verdict
from laststand.emulator.verification.verdict.loss_report import Loss
from laststand.emulator.verification.verdict.report import VERSION, CheckStatus, VerdictReport
from tests.unit.verification.test_verdict_forms import report
from tests.verdict_files import check_files, check_report, complaints, is_valid, validator

Document = dict[str, object]
LOST = report(CheckStatus.VIOLATED, unknown_reasons=("a gap",), story=2)


def document() -> Document:
    written: Document = json.loads(msgspec.json.encode(LOST))
    return written


def test_written_values_are_allowed() -> None:
    check_report(LOST)
    measure = AcksMeasure(acks=1, accepted=1, refused=0, read=1, high_watermark_advance=0)
    back = Return(acks=1, topic="t", partition=0, leader=1, leader_epoch=2, election="isr", log_end_offset=None)
    compared = AcksComparison(measures=(measure,), returns=(back,))
    check_report(msgspec.structs.replace(LOST, acks_comparison=compared, duration_s=1.5, seed=7))


def without_a_field(written: Document) -> None:
    del written["partitions"]


def of_another_version(written: Document) -> None:
    written["version"] = VERSION + 1


def with_an_unknown_word(written: Document) -> None:
    written["verdict"] = "probably"


def with_a_text_for_a_number(written: Document) -> None:
    loss = msgspec.convert(written["losses"], list[Document])[0]
    written["losses"] = [loss | {"acked_by": "broker 0"}]


def with_a_doubt_in_words(written: Document) -> None:
    written["doubts"] = ["a gap"]


@pytest.mark.parametrize(
    "spoil",
    [without_a_field, of_another_version, with_an_unknown_word, with_a_text_for_a_number, with_a_doubt_in_words],
)
def test_what_is_not_a_verdict_is_refused(spoil: Callable[[Document], None]) -> None:
    spoiled = document()
    spoil(spoiled)
    assert list(complaints(spoiled))


def test_a_field_of_a_later_program_is_passed_over() -> None:
    assert list(complaints(document() | {"new": 1})) == []


def spoiled(value: object) -> Iterator[object]:
    """Yields a document once without each of its fields, and once with each value of another type."""
    match value:
        case dict():
            for name, inner in value.items():
                yield {other: each for other, each in value.items() if other != name}
                yield from (value | {name: each} for each in spoiled(inner))
        case list():
            for place, inner in enumerate(value):
                yield from ([*value[:place], each, *value[place + 1 :]] for each in spoiled(inner))
    yield from ([], {}, "", 0, None, True, 0.5)


def test_the_compiled_schema_refuses_what_the_schema_refuses() -> None:
    answers = dict.fromkeys((True, False), 0)
    for each in spoiled(document()):
        is_allowed = validator().is_valid(each)
        assert is_valid(each) is is_allowed, each
        answers[is_allowed] += 1
    assert min(answers.values()) > 10, answers


def test_the_schema_has_no_keyword_that_its_compiler_reads_in_another_way() -> None:
    """In draft 7 a reference leaves no word to what stands beside it, and arrays have other keywords."""
    schema = json.loads(SCHEMA_FILE.read_text())
    beside = [part.keys() - {"description", "title", "default"} for part in parts(schema["$defs"]) if "$ref" in part]
    assert beside
    assert all(keywords == {"$ref"} for keywords in beside)
    keywords = {keyword for part in parts(schema["$defs"]) for keyword in part}
    assert keywords & {"prefixItems", "unevaluatedProperties", "dependentRequired", "minContains"} == set()


def parts(value: object) -> Iterator[Document]:
    """Yields all objects of a document."""
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from parts(inner)


def test_files_are_checked_where_they_are(tmp_path: Path) -> None:
    (tmp_path / "runs/1").mkdir(parents=True)
    write_verdict(LOST, tmp_path / "runs/1")
    assert list(check_files(tmp_path)) == []
    path = tmp_path / "runs/1/verdict.json"
    path.write_text(path.read_text().replace('"version": 2', '"version": "two"'))
    found = list(check_files(tmp_path))
    path.unlink()
    assert [line.partition(": ")[0] for line in found] == [str(path)] * len(found) != []


def test_every_field_is_described() -> None:
    kinds = structs_of(VerdictReport)
    assert {Doubt, Loss} < set(kinds)
    lacking = {kind.__name__: set(kind.__struct_fields__) - field_meanings(kind).keys() for kind in kinds}
    assert {name: fields for name, fields in lacking.items() if fields} == {}
    assert all(issubclass(kind, Enum) for kind in enums_of(VerdictReport))


def test_the_example_of_the_page_is_a_loss() -> None:
    content = LOSS_EXAMPLE.read_bytes()
    loss = msgspec.json.decode(content, type=Loss)
    assert list(complaints(document() | {"losses": [json.loads(content)]})) == []
    assert loss.story[0].text.startswith(f"{loss.records:,} records of {loss.topic}-{loss.partition} acknowledged")
