"""Eras are presets of switches, and ``docs/eras.md`` says of each switch whose it is and which one place reads it."""

import re
from enum import Enum
from pathlib import Path

import pytest

from docs.rule_tables import switch_readers, switch_sources
from laststand.emulator.core.errors import ConfigError
from laststand.emulator.core.switches import (
    DEFAULT_ERA,
    ERAS,
    ERAS_WITH_ZOOKEEPER,
    Switches,
    era_switches,
    switch_texts,
    with_switch,
)

ROOT = Path(__file__).parents[3]
SWITCHES = Switches.__struct_fields__
_WHOSE = r"KIP-\d+|Kafka \d+\.(\d+|x)|Laststand"


def text_of(value: object) -> str:
    if isinstance(value, Enum):
        return str(value.value)
    return "on" if value else "off"


def test_every_switch_is_somebodys_and_has_a_source() -> None:
    sources = switch_sources()
    assert tuple(sources) == SWITCHES
    assert [name for name, (whose, _) in sources.items() if not re.fullmatch(_WHOSE, whose)] == []
    assert [name for name, (_, source) in sources.items() if not source.endswith(".")] == []


def test_what_no_kip_has_is_all_that_the_text_lacks() -> None:
    text, amended = switch_texts(ERAS["kip-966-text"]), switch_texts(ERAS[DEFAULT_ERA])
    ours = [name for name, (whose, _) in switch_sources().items() if whose == "Laststand"]
    assert [name for name in SWITCHES if text[name] != amended[name]] == ours
    assert len(ours) == 17


def test_every_switch_is_read_in_one_place() -> None:
    assert {name: len(set(paths)) for name, paths in switch_readers().items()} == dict.fromkeys(SWITCHES, 1)


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
