"""The published schema of verdicts allows what is written, and nothing that only looks like it."""

import json
from collections.abc import Callable
from enum import Enum
from pathlib import Path

import msgspec
import pytest

from docs.generate import LOSS_EXAMPLE
from laststand.emulator.core.struct_docs import field_meanings
from laststand.emulator.core.struct_schema import enums_of, structs_of
from laststand.emulator.verification.doubts.doubt import Doubt
from laststand.emulator.verification.verdict.acks_comparison import AcksComparison, AcksMeasure, Return
from laststand.emulator.verification.verdict.forms import write_verdict
from laststand.emulator.verification.verdict.loss_report import Loss
from laststand.emulator.verification.verdict.report import VERSION, CheckStatus, VerdictReport
from tests.unit.verification.test_verdict_forms import report
from tests.verdict_files import check_files, check_report, complaints

Document = dict[str, object]
LOST = report(CheckStatus.VIOLATED, unknown_reasons=("a gap",), story=2)


def document() -> Document:
    written: Document = json.loads(msgspec.json.encode(LOST))
    return written


def test_what_is_written_is_allowed() -> None:
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
