"""Plays every plan of ``regressions`` and compares which checks fire with what its comment expects."""

from pathlib import Path

import pytest

from emulator.simulator.plan import parse_plan
from emulator.simulator.simulation import Simulation

PLANS = sorted((Path(__file__).parent / "regressions").glob("*.txt"))


@pytest.mark.parametrize("file", PLANS, ids=lambda file: file.stem)
def test_plan(file: Path) -> None:
    text = file.read_text()
    (expectation,) = (line for line in text.splitlines() if line.startswith("# expect:"))
    expected = set(expectation.removeprefix("# expect:").split()) - {"nothing"}
    simulation = Simulation(parse_plan(text))
    simulation.play_plan()
    found = {finding.check_id for finding in simulation.findings()}
    assert expected <= found
    assert expected or not found
