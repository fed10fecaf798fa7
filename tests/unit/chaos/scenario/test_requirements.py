"""Rules and eras that a scenario requires: read, implied by a step, and told where it is not so."""

from pathlib import Path

import pytest

from laststand.chaos.play.expressible import not_in_era
from laststand.chaos.scenario.requirements import rules_of, unmet
from laststand.chaos.scenario.scenario import Scenario
from laststand.chaos.scenario.scenario_file import read_scenario
from laststand.chaos.suite.cells import cells_of
from laststand.chaos.suite.selection import Selected
from laststand.emulator.core.eras import ALL_ERAS, era_rules, rule_texts
from laststand.emulator.core.errors import ConfigError
from laststand.emulator.core.zookeeper.inter_broker_protocol import PROPERTY
from laststand.emulator.plan.drivers import DriverName
from laststand.emulator.plan.overrides import parse_overrides
from laststand.emulator.plan.yaml_cursor import ScenarioError
from laststand.emulator.plan.zookeeper_refusals import NO_ZOOKEEPER

TEXT = """\
name: test/needs
cluster: {brokers: 2}
topics: [{name: orders, replicas: [[0, 1]]}]
workload: {producers: [{acks: all, rate: 10}]}
steps:
  - until: {partition: orders-0, elr: []}
"""
WAITS_FOR_ELR = "  - until: {partition: orders-0, isr: [0], elr: [1]}\n"


def scenario(more: str) -> Scenario:
    return read_scenario(Path("needs.yaml"), TEXT + more)


def told(more: str, era: str, *settings: str) -> tuple[str, ...]:
    return unmet(scenario(more), era, parse_overrides(settings).apply(era_rules(era)))


def test_a_scenario_names_the_protocol_that_brokers_begin_with() -> None:
    text = TEXT.replace("brokers: 2", "brokers: 2, inter.broker.protocol.version: '2.7,1:2.6'")
    upgraded = read_scenario(Path("needs.yaml"), text)
    rules = rules_of(upgraded, "kafka-3.9-zk")
    assert rule_texts(rules) == {**rule_texts(era_rules("kafka-3.9-zk")), PROPERTY: "2.7-IV2,1:2.6-IV0"}
    assert rules_of(upgraded, "kip-966") == era_rules("kip-966")
    assert rules_of(scenario(""), "kafka-3.9-zk") == era_rules("kafka-3.9-zk")
    (refused,) = not_in_era(upgraded, (), "kip-966", DriverName.SIMULATOR)
    assert refused == f"{PROPERTY} (line 2): {NO_ZOOKEEPER}"
    with pytest.raises(ScenarioError, match=r":2: inter.broker.protocol.version: .2\.77. is not allowed"):
        read_scenario(Path("needs.yaml"), text.replace("2.7,", "2.77,"))


def test_brokers_are_started_with_versions_that_the_release_knows() -> None:
    upgrade = f"  - start: {{node: 1, {PROPERTY}: 2.7}}\n"
    assert told(upgrade, "kafka-3.1-zk") == ()
    assert told(upgrade, "kafka-2.6-zk") == (f"{PROPERTY}=2.7-IV2 is newer than the release of kafka-2.6-zk",)


def test_a_cluster_begins_with_a_metadata_version_that_the_release_has() -> None:
    early = read_scenario(
        Path("needs.yaml"), TEXT.replace("brokers: 2", "brokers: 2, properties: {metadata.version: 4.0-IV0}")
    )
    (too_new,) = unmet(early, "kafka-3.9", era_rules("kafka-3.9"))
    assert too_new == (
        "metadata.version=4.0-IV0 is not allowed; expected 3.9-IV0 or earlier, as the era's release has no later one "
        "(kafka-3.9)"
    )
    (too_old,) = unmet(early, "kip-966", era_rules("kip-966"))
    assert "4.0-IV1 or later with switch elr on" in too_old
    assert unmet(early, "kafka-3.9", era_rules("kafka-3.9"), (("metadata.version", "3.9"),)) == ()
    assert unmet(early, "kafka-2.6-zk", era_rules("kafka-2.6-zk")) == ()
    with pytest.raises(ConfigError, match=r"metadata.version=4.2 is not allowed; expected 3.9-IV0 or earlier"):
        parse_overrides(("metadata.version=4.2",)).apply(era_rules("kafka-3.9"))


def test_rules_and_eras_can_be_required() -> None:
    needs = "requires:\n  elr: on\n  truncation: [kip101, leader_epoch]\n  eras: [kafka-4.2, kip-966]\n"
    assert told(needs, "kip-966") == told(needs, "kafka-4.2") == ()
    assert told(needs, "kip-966", "elr=off") == (
        "requires: elr (line 8) requires elr=on, and kip-966 is played with elr=off",
    )
    assert told(needs, "kafka-0.10", "elr=on") == (
        "requires: eras (line 10) requires era kafka-4.2 or kip-966, and this is kafka-0.10",
        "requires: truncation (line 9) requires truncation=kip101 or leader_epoch, "
        "and kafka-0.10 is played with truncation=high_watermark",
    )
    assert told("requires: {stop_replica_epoch: greater}\n", "kip-966") == (
        "requires: stop_replica_epoch (line 7) requires stop_replica_epoch=greater, and kip-966 has no such rule",
    )


def test_several_controllers_have_no_place_beside_zookeeper() -> None:
    quorum = read_scenario(Path("quorum.yaml"), TEXT.replace("brokers: 2", "brokers: 2, controllers: 3"))
    assert unmet(quorum, "kip-966", era_rules("kip-966")) == ()
    (reason,) = unmet(quorum, "kafka-2.6-zk", era_rules("kafka-2.6-zk"))
    assert reason.startswith("controllers: 3 have no place in era kafka-2.6-zk")


@pytest.mark.parametrize("era", ALL_ERAS)
def test_what_requires_nothing_is_played_anywhere(era: str) -> None:
    assert told("", era) == ()


def test_a_wait_for_members_of_an_elr_requires_one() -> None:
    assert told(WAITS_FOR_ELR, "kip-966") == ()
    assert told(WAITS_FOR_ELR, "kafka-3.9") == (
        "step 2 {until: {partition: orders-0, isr: [0], elr: [1]}} (line 7) requires elr=on, "
        "and kafka-3.9 is played with elr=off",
    )
    either = "  - wait_for_any: {of: [{partition: orders-0, elr: [1]}, {partition: orders-0, leader: 1}]}\n"
    upgraded = "  - update_feature: {feature: eligible.leader.replicas.version, level: 1}\n"
    for more in (either, upgraded + WAITS_FOR_ELR, WAITS_FOR_ELR + "missed_step: end\n"):
        assert told(more, "kafka-3.9") == ()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("requires: {elr: maybe}", "needs.yaml:7: elr: 'maybe' is not allowed, allowed: on, off"),
        ("requires: {nothing: on}", "needs.yaml:7: nothing: unknown key"),
        ("requires: {eras: [kafka-1.0]}", "needs.yaml:7: eras: 'kafka-1.0' is not allowed"),
    ],
)
def test_what_cannot_be_required_is_refused(more: str, said: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        scenario(more)
    assert str(refused.value).startswith(said)


def test_a_suite_does_not_play_it_where_that_is_not_so() -> None:
    found = cells_of(
        [Selected(scenario=scenario(WAITS_FOR_ELR))],
        eras=("kafka-3.9", "kip-966"),
        repetitions=1,
        seed=1,
        drivers=(DriverName.SIMULATOR,),
    )
    skipped = {cell.era: cell.skipped for cell in found}
    assert skipped["kip-966"] is None
    assert skipped["kafka-3.9"] is not None
    assert "(line 7) requires elr=on" in skipped["kafka-3.9"]
