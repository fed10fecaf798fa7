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


def patient_copy(name: str, directory: Path, *, slower: int = 1) -> Path:
    """Writes a bundled scenario with more time for its barriers, and returns where.

    Args:
        name: of the scenario.
        directory: of the copy.
        slower: that many times fewer records are sent in a second, and waited for. Each batch costs CPU; where it does
            not matter how many there are, they need not be many.
    """
    document = yaml.safe_load(find_scenario(name).read_text(encoding="utf-8"))
    for producer in document["workload"]["producers"]:
        producer["rate"] //= slower
    for barrier in (step["until"] for step in document["steps"] if "until" in step):
        barrier.setdefault("within", "90 s")
        if "acked" in barrier:
            barrier["acked"] //= slower
    path = directory / f"{Path(name).name}.yaml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path
