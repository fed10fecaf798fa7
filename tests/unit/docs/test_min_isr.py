"""The figures of ``docs/min-isr.md`` are those of its scenarios."""

from pathlib import Path

import pytest

from docs.min_isr import ERAS, PAGE, SCENARIOS, Measured, cell, page, play, row
from laststand.emulator.core.types import Acks

_SAMPLED = ("last-replica", "two-power-losses", "one-power-loss")
"""They have every kind of cell; ``tests/cluster/test_scenarios.py`` plays the others."""


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Measured]:
    store: Path = tmp_path_factory.mktemp("min-isr")
    return {(name, era): play(name, era, store / name / era) for name in _SAMPLED for era in ERAS}


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
