"""Properties of the clusters that tests start, and deadlines of the scenarios that they play there."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import yaml

from laststand.chaos.scenario.scenario_file import find_scenario

QUICK: Final[Mapping[str, str]] = {
    "broker.session.timeout.ms": "2000",
    "broker.heartbeat.interval.ms": "250",
    "replica.lag.time.max.ms": "2000",
}
"""For tests that take a broker away, and wait until the cluster goes on without it."""

PATIENT: Final[Mapping[str, str]] = {"broker.session.timeout.ms": "30000"}
"""For tests in which no broker fails: on a machine that stalls for some seconds none is fenced, and no leader moves."""


def patient_copy(name: str, directory: Path) -> Path:
    """Writes a bundled scenario with more time for its barriers, and returns where."""
    document = yaml.safe_load(find_scenario(name).read_text(encoding="utf-8"))
    for step in document["steps"]:
        if "until" in step:
            step["until"].setdefault("within", "90 s")
    path = directory / f"{Path(name).name}.yaml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path
