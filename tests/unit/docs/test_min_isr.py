"""The figures of ``docs/min-isr.md`` are those of its scenarios."""

from pathlib import Path

import msgspec
import pytest

from docs.min_isr import ERAS, PAGE, SCENARIOS, Measured, cell, page, play, row
from laststand.emulator.core.types import Acks
from laststand.emulator.verification.verdict.report import Expected
from tests.library import Library

_SAMPLED = ("last-replica", "two-power-losses", "one-power-loss")
"""They have every kind of cell."""


@pytest.fixture
def measured(library: Library) -> dict[tuple[str, str], Measured]:
    runs = {(name, era): library.run(f"guarantees/{name}", era) for name in _SAMPLED for era in ERAS}
    return {cell: Measured(run.directory, run.scenario, run.report) for cell, run in runs.items()}


def test_a_scenario_is_measured_as_it_is_played_elsewhere(
    measured: dict[tuple[str, str], Measured], tmp_path: Path
) -> None:
    played = play("last-replica", "kafka-3.9", tmp_path / "run").report
    known = measured["last-replica", "kafka-3.9"].report
    assert played.outcome is Expected.MET
    same = {"run": known.run, "started": known.started, "duration_s": known.duration_s, "outcome": known.outcome}
    assert msgspec.structs.replace(played, **same) == known


def test_the_page_has_what_its_scenarios_measure(measured: dict[tuple[str, str], Measured]) -> None:
    text = PAGE.read_text(encoding="utf-8")
    for (name, era), run in measured.items():
        section = text.partition(f"### {era}\n")[2].partition("#")[0]
        assert f"| {' | '.join(row(name, run))} |" in section.splitlines(), f"{name} under {era}: make min-isr"


def test_the_page_is_written_with_every_row(measured: dict[tuple[str, str], Measured]) -> None:
    runs = {(name, era): measured.get((name, era), measured["last-replica", era]) for name in SCENARIOS for era in ERAS}
    written = page(runs)
    assert written.count("/guarantees/") == len(SCENARIOS) * len(ERAS)
    assert (
        written.partition("<!-- measured -->")[0] == PAGE.read_text(encoding="utf-8").partition("<!-- measured -->")[0]
    )


def test_its_first_sentence_is_so(measured: dict[tuple[str, str], Measured]) -> None:
    for name in ("one-power-loss", "last-replica"):
        for era in ("kafka-4.2", "kip-966"):
            assert cell(measured[name, era].report, 2, Acks.ALL) == "0"
    assert cell(measured["last-replica", "kafka-3.9"].report, 2, Acks.ALL).startswith("**")
    assert cell(measured["two-power-losses", "kip-966"].report, 2, Acks.ALL) != "0"
