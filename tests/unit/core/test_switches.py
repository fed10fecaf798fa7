import pytest

from laststand.emulator.core.errors import ConfigError
from laststand.emulator.core.switches import (
    DEFAULT_ERA,
    ERAS,
    ERAS_WITH_ZOOKEEPER,
    MaximalIsr,
    Switches,
    era_switches,
    with_switch,
)


def test_the_defaults_are_the_default_era() -> None:
    assert era_switches(DEFAULT_ERA) == Switches()


@pytest.mark.parametrize("era", ["kafka-9.9", *sorted(ERAS_WITH_ZOOKEEPER)])
def test_an_era_that_cannot_be_played_names_those_that_can(era: str) -> None:
    with pytest.raises(ConfigError) as caught:
        era_switches(era)

    assert all(known in caught.value.expected for known in ERAS)


def test_switches_are_set_by_the_names_of_their_rules() -> None:
    assert with_switch(Switches(), "elr", "off").elr is False
    assert with_switch(Switches(), "maximal_isr", "committed_only").maximal_isr is MaximalIsr.COMMITTED_ONLY


@pytest.mark.parametrize(
    ("name", "text"), [("elr", "false"), ("maximal_isr", "off"), ("min.insync.replicas", "2"), ("ELR", "on")]
)
def test_other_names_and_rules_are_errors(name: str, text: str) -> None:
    with pytest.raises(ConfigError):
        with_switch(Switches(), name, text)
