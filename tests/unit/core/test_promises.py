"""The table of promises: its switches exist, its outcomes hold in every era, and both oracles judge what it says."""

from pathlib import Path
from typing import Final

import pytest

from laststand.emulator.core.eras import ALL_ERAS, ZooKeeperSwitches, era_rules, rule_texts, with_rule
from laststand.emulator.core.errors import ConfigError
from laststand.emulator.core.promises import (
    OUTCOME_CHECKS,
    PROMISES,
    JudgedBy,
    Keeper,
    Member,
    PromiseKind,
    is_promised,
    is_promised_by_all,
    rules_named_beside,
)
from laststand.emulator.core.switches import ERAS, Switches, switch_texts, with_switch
from laststand.emulator.core.types import ClusterKind, NodeRole
from laststand.emulator.verification.rules.checks import CHECKS

BOUND = [check_id for check_id, promise in PROMISES.items() if promise.switches]


@pytest.mark.parametrize("check_id", BOUND)
def test_it_names_values_that_its_switches_can_have(check_id: str) -> None:
    for name, values in PROMISES[check_id].switches.items():
        assert values
        for value in values:
            assert rule_texts(with_rule(ZooKeeperSwitches(), name, value))[name] == value


def test_a_value_that_no_switch_has_is_no_switch_text() -> None:
    with pytest.raises(ConfigError):
        with_switch(Switches(), "elr", "maybe")


@pytest.mark.parametrize("check_id", PROMISES)
def test_everything_is_promised_in_the_default_era(check_id: str) -> None:
    of_zookeeper = PROMISES[check_id].only_of is ClusterKind.ZOOKEEPER
    assert is_promised(check_id, switch_texts(ERAS["kip-966"])) is not of_zookeeper


@pytest.mark.parametrize("check_id", [check_id for check_id in PROMISES if check_id.startswith("Z")])
def test_what_is_about_zookeeper_is_promised_where_there_is_one(check_id: str) -> None:
    assert is_promised(check_id, rule_texts(era_rules("kip-550-zk")))


@pytest.mark.parametrize("check_id", [key for key, promise in PROMISES.items() if promise.only_of is ClusterKind.KRAFT])
def test_what_is_about_a_kraft_controller_is_not_promised_where_there_is_none(check_id: str) -> None:
    assert not is_promised(check_id, rule_texts(era_rules("kip-550-zk")))


@pytest.mark.parametrize("check_id", BOUND)
def test_it_is_not_promised_where_its_switches_are_unknown(check_id: str) -> None:
    assert not is_promised(check_id, {})


def test_only_rules_and_liveness_depend_on_switches() -> None:
    assert {PROMISES[check_id].kind for check_id in BOUND} <= {PromiseKind.RULE, PromiseKind.LIVENESS}


def test_verification_judges_exactly_what_the_table_says() -> None:
    assert {check.check_id for check in CHECKS} == {
        check_id for check_id, promise in PROMISES.items() if promise.judged_by is not JudgedBy.SIMULATOR
    }


def test_a_scenario_may_expect_any_outcome_that_verification_judges() -> None:
    assert {"D1", "C3", "E1", "M8", "M14"} <= set(OUTCOME_CHECKS)
    assert not {"D3", "M15", "L7"} & set(OUTCOME_CHECKS)


def test_a_promise_is_kept_by_each_of_several_values() -> None:
    rules = switch_texts(Switches())
    assert is_promised("M15", rules | {"stray_cleanup": "rename"})
    assert not is_promised("M15", rules | {"stray_cleanup": "off"})


@pytest.mark.parametrize(
    ("check_id", "role", "rule", "is_kept"),
    [
        ("H2", NodeRole.BROKER, "hw_requires_min_isr", False),
        ("H2", NodeRole.CONTROLLER, "hw_requires_min_isr", True),
        ("M15", NodeRole.BROKER, "stray_cleanup", False),
        ("M15", NodeRole.CONTROLLER, "stray_cleanup", True),
        ("M19", NodeRole.BROKER, "cancel_requires_min_isr", True),
        ("M19", NodeRole.CONTROLLER, "cancel_requires_min_isr", False),
        ("M5", NodeRole.BROKER, "unclean_detection", False),
        ("M5", NodeRole.CONTROLLER, "unclean_detection", False),
    ],
)
def test_a_mixed_cluster_promises_what_those_do_whose_rule_it_is(
    check_id: str, role: NodeRole, rule: str, *, is_kept: bool
) -> None:
    has = switch_texts(Switches())
    others = [Member(NodeRole.BROKER, has), Member(NodeRole.CONTROLLER, has)]
    assert is_promised_by_all(check_id, [*others, Member(role, has | {rule: "off"})]) is is_kept


def test_in_a_zookeeper_cluster_a_broker_is_the_controller() -> None:
    has = rule_texts(era_rules("kip-550-zk"))
    members = [Member(NodeRole.ZOOKEEPER, has), Member(NodeRole.BROKER, has | {"cancel_requires_min_isr": "off"})]
    assert not is_promised_by_all("M11", members)


_CORE: Final = Path(__file__).parents[3] / "emulator" / "core"
_OF_BROKERS: Final = {
    name
    for promise in PROMISES.values()
    if promise.keeper in (Keeper.BROKER, Keeper.PROCESS)
    for name in promise.switches
}
_OF_CONTROLLERS: Final = {
    name for promise in PROMISES.values() if promise.keeper is Keeper.CONTROLLERS for name in promise.switches
}


@pytest.mark.parametrize(
    ("names", "others"), [(_OF_BROKERS, "controller"), (_OF_CONTROLLERS, "broker")], ids=["brokers", "controllers"]
)
def test_the_other_side_does_not_read_the_rules_of_a_keeper(names: set[str], others: str) -> None:
    assert names
    read = "".join(file.read_text(encoding="utf-8") for file in sorted((_CORE / others).rglob("*.py")))
    assert {name for name in names if f"switches.{name}" in read} == set()


@pytest.mark.parametrize("era", ALL_ERAS)
def test_nodes_of_every_era_name_each_rule_that_they_have_to(era: str) -> None:
    texts = rule_texts(era_rules(era))
    assert rules_named_beside(texts) <= texts.keys()
