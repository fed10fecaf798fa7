"""``docs/eras.md`` says what the code does: each cell, each source, and the one place that reads each switch."""

import re
from enum import Enum
from pathlib import Path

import pytest

from emulator.core.errors import ConfigError
from emulator.core.switches import DEFAULT_ERA, ERAS, ERAS_WITH_ZOOKEEPER, Switches, era_switches, with_switch

ROOT = Path(__file__).parents[3]
SWITCHES = Switches.__struct_fields__


def tables() -> list[list[list[str]]]:
    """Returns the document's tables, each a list of rows of cells without backquotes."""
    found: list[list[list[str]]] = []
    is_inside = False
    for line in (ROOT / "docs" / "eras.md").read_text().splitlines():
        if not line.startswith("|"):
            is_inside = False
            continue
        if not is_inside:
            found.append([])
            is_inside = True
        found[-1].append([cell.strip().replace("`", "") for cell in line.strip("|").split("|")])
    return found


def text_of(value: object) -> str:
    if isinstance(value, Enum):
        return str(value.value)
    return "on" if value else "off"


def test_the_table_is_the_code() -> None:
    header, _, *rows = tables()[0]
    assert header[1:] == list(ERAS)
    documented = {row[0]: row[1:] for row in rows}
    assert documented == {name: [text_of(getattr(switches, name)) for switches in ERAS.values()] for name in SWITCHES}


def test_every_switch_has_a_source() -> None:
    _, _, *rows = tables()[1]
    assert {row[0] for row in rows} == set(SWITCHES)
    assert all(re.search(r"KIP-\d+|KAFKA-\d+", row[1]) for row in rows)


def test_every_switch_is_read_in_one_place_and_the_document_names_it() -> None:
    _, _, *rows = tables()[2]
    documented = {name: row[1] for row in rows for name in row[0].split(", ")}
    reads: dict[str, list[str]] = {name: [] for name in SWITCHES}
    for package in ("core", "storage"):
        for file in sorted((ROOT / "emulator" / package).rglob("*.py")):
            for name in re.findall(r"switches\.(\w+)", file.read_text()):
                if name in reads:
                    reads[name].append(str(file.relative_to(ROOT)))
    assert reads == {name: [documented[name]] for name in SWITCHES}


def test_the_default_era_is_the_default_of_every_switch() -> None:
    assert ERAS[DEFAULT_ERA] == Switches()


def test_the_document_names_the_eras_to_come() -> None:
    text = (ROOT / "docs" / "eras.md").read_text()
    assert all(f"`{era}`" in text for era in ERAS_WITH_ZOOKEEPER)


@pytest.mark.parametrize("era", ["kafka-1.0", "", *sorted(ERAS_WITH_ZOOKEEPER)])
def test_an_era_that_is_not_there_is_an_error(era: str) -> None:
    with pytest.raises(ConfigError, match="era"):
        era_switches(era)


@pytest.mark.parametrize("name", SWITCHES)
def test_a_switch_takes_each_of_its_rules_and_nothing_else(name: str) -> None:
    default = getattr(Switches(), name)
    rules = [member.value for member in type(default)] if isinstance(default, Enum) else ["on", "off"]
    for rule in rules:
        assert text_of(getattr(with_switch(Switches(), name, rule), name)) == rule
    with pytest.raises(ConfigError, match=name):
        with_switch(Switches(), name, "no such rule")
