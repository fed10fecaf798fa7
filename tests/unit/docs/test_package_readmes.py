"""The tables in the READMEs of packages: every module is in the map."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGES = (
    "emulator/autopsy",
    "emulator/kafka",
    "emulator/kafka_listener",
    "emulator/core",
    "emulator/core/broker/groups",
    "emulator/core/authorizer",
    "emulator/core/broker/kraft",
    "emulator/core/broker/replicas",
    "emulator/core/broker/zookeeper",
    "emulator/core/controller",
    "emulator/core/client",
    "emulator/core/zookeeper",
    "emulator/core/zookeeper/controller",
    "emulator/core/zookeeper/nodes",
    "emulator/node",
    "emulator/rpc",
    "emulator/storage",
    "emulator/client",
    "emulator/cluster",
    "laststand/cli",
    "laststand/cli/commands",
    "laststand/cli/program",
    "laststand/cli/output",
    "laststand/cli/options",
    "laststand/cli/runs",
    "laststand/cli/spark",
    "laststand/cli/standing",
    "emulator/simulator/actions",
    "emulator/simulator/cluster",
    "emulator/simulator/disk",
    "emulator/simulator/moves",
    "emulator/simulator/network",
    "emulator/simulator/nodes",
    "emulator/simulator/profiles",
    "emulator/simulator/run",
    "emulator/simulator/search",
    "emulator/simulator/zookeeper",
    "emulator/live",
    "emulator/report",
    "emulator/verification",
    "emulator/verification/doubts",
    "emulator/verification/facts",
    "emulator/verification/reading",
    "emulator/verification/rules",
    "emulator/verification/slices",
    "emulator/verification/spark",
    "emulator/verification/story",
    "emulator/verification/tables",
    "emulator/verification/verdict",
    "chaos/scenario",
    "chaos/play",
    "chaos/simulated",
    "chaos/standing",
    "chaos/suite",
    "chaos/plans",
)


def rows(package: str) -> list[list[str]]:
    """Returns the cells of all tables of a package's README."""
    lines = (ROOT / package / "README.md").read_text().splitlines()
    return [line.strip("|").split("|") for line in lines if line.startswith("|")]


def modules_on_disk(package: str) -> set[str]:
    return {file.name for file in (ROOT / package).glob("*.py")} - {"__init__.py"}


@pytest.mark.parametrize("package", PACKAGES)
def test_the_map_names_every_module_and_no_other(package: str) -> None:
    named = {module for row in rows(package) for module in re.findall(r"`(\w+\.py)`", row[0])}
    assert named == modules_on_disk(package)


def test_the_map_of_the_process_driver_names_its_faults() -> None:
    named = {module for row in rows("chaos/process") for module in re.findall(r"`(\w+\.py)`", row[0])}
    assert named == modules_on_disk("chaos/process") | modules_on_disk("chaos/process/faults")
