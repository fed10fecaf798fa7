"""The tables in the READMEs of packages: every module is in the map."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
ROOMS = ("benchmarks", "chaos", "emulator", "laststand/cli", "tests/clients", "tests/conformance")
"""Folders below which each README with modules beside it is a map."""

PROCESS_DRIVER = "chaos/process"
"""Its README has a row for each executor in the folder below it."""

PACKAGES = sorted(
    str(readme.parent.relative_to(ROOT))
    for room in ROOMS
    for readme in (ROOT / room).rglob("README.md")
    if any(readme.parent.glob("*.py")) and readme.parent != ROOT / PROCESS_DRIVER
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
    named = {module for row in rows(PROCESS_DRIVER) for module in re.findall(r"`(\w+\.py)`", row[0])}
    assert named == modules_on_disk(PROCESS_DRIVER) | modules_on_disk(f"{PROCESS_DRIVER}/faults")
