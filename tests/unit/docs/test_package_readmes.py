"""The tables in the READMEs of packages: every module is in the map, and every switch is where its table says."""

import re
from pathlib import Path

import pytest

from emulator.core.switches import Switches

ROOT = Path(__file__).parents[3]
PACKAGES = (
    "emulator/autopsy",
    "emulator/kafka",
    "emulator/core",
    "emulator/core/broker",
    "emulator/core/controller",
    "emulator/core/client",
    "emulator/node",
    "emulator/rpc",
    "emulator/storage",
    "emulator/client",
    "emulator/cluster",
    "emulator/cli",
    "emulator/live",
    "emulator/report",
    "chaos/scenario",
    "chaos/play",
    "chaos/simulated",
    "chaos/standing",
    "chaos/suite",
    "chaos/plans",
)

WITH_SWITCHES = ("emulator/core/broker", "emulator/core/controller", "emulator/storage")


def rows(package: str) -> list[list[str]]:
    """Returns the cells of all tables of a package's README."""
    lines = (ROOT / package / "README.md").read_text().splitlines()
    return [line.strip("|").split("|") for line in lines if line.startswith("|")]


def modules_on_disk(package: str) -> set[str]:
    return {file.name for file in (ROOT / package).glob("*.py")} - {"__init__.py"}


def switch_table(package: str) -> dict[str, str]:
    """Returns the module of each switch by the table of a README."""
    return {
        switch: module
        for row in rows(package)
        for switch in re.findall(r"`(\w+)`", row[0])
        if switch in Switches.__struct_fields__
        for module in re.findall(r"`(\w+\.py)`", row[1])
    }


def switches_read(package: str) -> dict[str, str]:
    return {
        switch: file.name
        for file in (ROOT / package).glob("*.py")
        for switch in re.findall(r"switches\.(\w+)", file.read_text())
        if switch in Switches.__struct_fields__
    }


@pytest.mark.parametrize("package", PACKAGES)
def test_the_map_names_every_module_and_no_other(package: str) -> None:
    named = {module for row in rows(package) for module in re.findall(r"`(\w+\.py)`", row[0])}
    assert named == modules_on_disk(package)


def test_the_map_of_the_process_driver_names_its_faults() -> None:
    named = {module for row in rows("chaos/process") for module in re.findall(r"`(\w+\.py)`", row[0])}
    assert named == modules_on_disk("chaos/process") | modules_on_disk("chaos/process/faults")


@pytest.mark.parametrize("package", WITH_SWITCHES)
def test_the_table_of_switches_names_the_modules_that_read_them(package: str) -> None:
    assert switch_table(package) == switches_read(package) != {}


def test_every_switch_is_in_one_of_the_tables() -> None:
    tables = [switch_table(package) for package in WITH_SWITCHES]
    assert sorted(switch for table in tables for switch in table) == sorted(Switches.__struct_fields__)
