"""Parts of a scenario that the simulator cannot play are found before anything starts, by step and line."""

from pathlib import Path

import pytest

from laststand.chaos.play.expressible import not_expressible
from laststand.chaos.scenario.requirements import unmet
from laststand.chaos.scenario.scenario_file import find_scenario, load_scenario, read_scenario, scenario_names
from laststand.emulator.core.eras import era_rules, with_rule
from laststand.emulator.core.zookeeper.inter_broker_protocol import PROPERTY
from laststand.emulator.plan.drivers import DriverName

ABOUT_BYTES_OR_DISKS = (
    "faults/bytes",
    "faults/disks",
    "faults/flipped-bit",
    "faults/flipped-bit-of-the-leader",
    "faults/slow-links",
    "kip-966/hole-between-segments",
)

TEXT = """\
name: test/flush
cluster: {{brokers: 2, properties: {{{properties}}}}}
topics: [{{name: orders, replicas: [[0, 1]]{topic}}}]
workload: {{producers: [{{acks: all, rate: 10}}]}}
steps:
  - kill: {{node: 1}}
  - {step}
"""


def found(*, properties: str = "", topic: str = "", step: str = "start: {node: 1}") -> tuple[str, ...]:
    scenario = read_scenario(Path("flush.yaml"), TEXT.format(properties=properties, topic=topic, step=step))
    assert not_expressible(scenario, scenario.properties, DriverName.PROCESS) == ()
    return not_expressible(scenario, scenario.properties, DriverName.SIMULATOR)


@pytest.mark.parametrize(
    ("properties", "topic"), [("log.flush.interval.ms: 5", ""), ("", ", flush.ms: 5")], ids=["node", "topic"]
)
def test_a_flush_by_the_clock_is_not_there(properties: str, topic: str) -> None:
    assert len(found(properties=properties, topic=topic)) == 1


def test_a_step_is_named_with_its_line() -> None:
    (reason,) = found(step="alter_config: {topic: orders, set: {flush.ms: 5}}")
    assert reason.startswith("step 2 ")
    assert "(line 7)" in reason


def test_clients_of_kafka_have_links_on_processes_and_in_containers_only() -> None:
    text = TEXT.format(properties="", topic="", step="cut: {from: app, to: 0}")
    scenario = read_scenario(Path("app.yaml"), text.replace("brokers: 2,", "brokers: 2, kafka_clients: [app],"))
    refused = {driver for driver in DriverName if not_expressible(scenario, scenario.properties, driver)}
    assert refused == {*DriverName} - {DriverName.PROCESS, DriverName.DOCKER}


def test_nodes_in_containers_and_those_of_kafka_speak_no_tls_to_each_other() -> None:
    text = TEXT.format(properties="security.inter.broker.protocol: SSL", topic="", step="start: {node: 1}")
    scenario = read_scenario(Path("tls.yaml"), text)
    for driver in DriverName:
        refused = not_expressible(scenario, scenario.properties, driver)
        assert any("TLS" in each for each in refused) is (driver in (DriverName.DOCKER, DriverName.KAFKA))


def test_several_controllers_play_everywhere_but_on_an_external_cluster() -> None:
    text = TEXT.format(properties="", topic="", step="kill: {node: active-controller}")
    scenario = read_scenario(Path("quorum.yaml"), text.replace("brokers: 2,", "brokers: 2, controllers: 3,"))
    refused = {driver for driver in DriverName if not_expressible(scenario, scenario.properties, driver)}
    assert refused == {DriverName.EXTERNAL}


@pytest.mark.parametrize(
    ("key", "drivers"),
    [
        ("standby_controllers: 1", {DriverName.PROCESS, DriverName.DOCKER, DriverName.SIMULATOR}),
        ("combined: true", {DriverName.PROCESS, DriverName.SIMULATOR}),
    ],
)
def test_where_controllers_come_later_or_share_processes(key: str, drivers: set[DriverName]) -> None:
    text = TEXT.format(properties="", topic="", step="kill: {node: active-controller}")
    scenario = read_scenario(Path("quorum.yaml"), text.replace("brokers: 2,", f"brokers: 3, controllers: 3, {key},"))
    assert {driver for driver in DriverName if not not_expressible(scenario, scenario.properties, driver)} == drivers


@pytest.mark.parametrize(
    ("properties", "topic", "step"),
    [
        ("unclean.recovery.manager.enabled: true", "", "start: {node: 1}"),
        ("", ", unclean.recovery.strategy: Balanced", "start: {node: 1}"),
        ("", "", "alter_config: {topic: orders, set: {unclean.recovery.strategy: Balanced}}"),
    ],
    ids=["node", "topic", "step"],
)
def test_kafka_has_no_unclean_recovery(properties: str, topic: str, step: str) -> None:
    scenario = read_scenario(Path("r.yaml"), TEXT.format(properties=properties, topic=topic, step=step))
    (reason,) = not_expressible(scenario, scenario.properties, DriverName.KAFKA)
    assert reason.endswith("unclean recovery")
    assert "unclean.recovery." in reason


def test_the_bundled_scenarios_with_an_unclean_recovery_are_not_for_kafka() -> None:
    scenario = load_scenario(find_scenario("kip-966/controller-fails-over-in-recovery"))
    assert not_expressible(scenario, scenario.properties, DriverName.KAFKA) == (
        "unclean.recovery.manager.enabled: Kafka has no unclean recovery",
        "topic orders, unclean.recovery.strategy: Kafka has no unclean recovery",
    )


def test_everything_else_is_there() -> None:
    assert found(properties="log.flush.interval.messages: 1", topic=", flush.messages: 1") == ()
    assert found(step="alter_config: {topic: orders, set: {min.insync.replicas: 2}}") == ()


@pytest.mark.parametrize("name", scenario_names())
def test_every_bundled_scenario_can_be_played_on_both_unless_it_is_about_bytes_or_disks(name: str) -> None:
    scenario = load_scenario(find_scenario(name))
    if not name.startswith("zookeeper/") and scenario.controllers == 1:
        assert not_expressible(scenario, scenario.properties, DriverName.PROCESS) == ()
    refused = not_expressible(scenario, scenario.properties, DriverName.SIMULATOR)
    assert bool(refused) == (name in ABOUT_BYTES_OR_DISKS)


def test_a_protocol_of_a_broker_that_is_not_there_is_refused() -> None:
    scenario = read_scenario(Path("flush.yaml"), TEXT.format(properties="", topic="", step="start: {node: 1}"))
    switches = with_rule(era_rules("kafka-3.9-zk"), PROPERTY, "3.9,2:2.6")
    assert unmet(scenario, "kafka-3.9-zk", switches) == (
        "inter.broker.protocol.version=3.9-IV0,2:2.6-IV0 names a broker that is none of 0 to 1",
    )


def test_an_action_that_a_driver_does_not_have_is_refused_with_the_reason() -> None:
    scenario = read_scenario(Path("wait.yaml"), TEXT.format(properties="", topic="", step="draw: {number: 1}"))
    (reason,) = not_expressible(scenario, scenario.properties, DriverName.PROCESS)
    assert reason.startswith("step 2 ")
    assert "draws by itself" in reason
    assert not_expressible(scenario, scenario.properties, DriverName.SIMULATOR) == ()
