"""Scenarios in virtual time: they come to what they expect of each era, leave a whole run, and always the same one."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from laststand.chaos.campaign import play_runs
from laststand.chaos.plans.lost_records import lost_records_of
from laststand.chaos.play.expectation import compare
from laststand.chaos.play.run_directory import create_run_directory, read_cluster_file
from laststand.chaos.play.run_order import RunOrder
from laststand.chaos.play.runner import RunStatus
from laststand.chaos.scenario.scenario import Scenario
from laststand.chaos.scenario.scenario_file import find_scenario, load_scenario, read_scenario, scenario_names
from laststand.emulator.client.history import read_history
from laststand.emulator.core.eras import era_rules, with_rule
from laststand.emulator.core.history import FinalReadOperation
from laststand.emulator.core.switches import Switches, era_switches, with_switch
from laststand.emulator.core.zookeeper.inter_broker_protocol import PROPERTY
from laststand.emulator.plan.drivers import DriverName
from laststand.emulator.verification.verdict.report import Expected
from tests.library import Library, eras_of, shown

BROKEN = """\
name: test/broken
cluster:
  brokers: 2
  properties: {broker.session.timeout.ms: 2000, broker.heartbeat.interval.ms: 250, replica.lag.time.max.ms: 1500}
topics: [{name: orders, replicas: [[0, 1]], min.insync.replicas: 1}]
workload: {producers: [{acks: all, rate: 100}, {acks: 0, rate: 20}], consumers: [{}]}
steps:
"""


def play(store: Path, scenario: Scenario, era: str, *, seed: int = 1, switches: Switches | None = None) -> Path:
    directory = create_run_directory(store, scenario, now=datetime(2026, 1, 1, tzinfo=UTC))
    order = RunOrder(
        scenario=scenario,
        directory=directory,
        era=era,
        switches=switches or era_switches(era),
        properties=scenario.properties,
        seed=seed,
        toxiproxy=None,
        driver=DriverName.SIMULATOR,
    )
    told: list[RunStatus] = []
    play_runs([order], on_status=told.append)
    assert told
    return directory


def problems(directory: Path) -> list[str]:
    return [line for line in (directory / "run.log").read_text().splitlines() if " ERROR " in line]


def check_as_expected(name: str, library: Library) -> None:
    for era in eras_of(name):
        run = library.run(name, era)
        # One of several partitions may have its leader already when an administrator has all of them elect one.
        assert [line for line in problems(run.directory) if "ELECTION_NOT_NEEDED" not in line] == [], era
        assert compare(run.report, run.scenario.expectation(era)) == (Expected.MET, ()), era


@pytest.mark.parametrize("name", scenario_names())
def test_a_scenario_does_what_it_expects_of_each_era(name: str, library: Library) -> None:
    check_as_expected(name, library)


def test_a_scenario_of_the_documents_does_what_it_expects_of_each_era(library: Library) -> None:
    for name in shown():
        check_as_expected(name, library)


def test_a_leader_that_acts_on_an_isr_it_only_asked_for_loses_what_it_acknowledged(tmp_path: Path) -> None:
    scenario = load_scenario(find_scenario("kip-497/leader-cut-off"))
    hasty = with_switch(era_switches("kip-966"), "maximal_isr", "proposed")
    for switches, least, most in ((era_switches("kip-966"), 0, 0), (hasty, 300, 1000)):
        directory = play(tmp_path, scenario, "kip-966", switches=switches)
        assert problems(directory) == []
        assert least <= len(lost_records_of(directory)) <= most


def test_an_unclean_recovery_waits_for_a_late_replica_or_loses_what_it_has(tmp_path: Path) -> None:
    scenario = load_scenario(find_scenario("kip-966/recovery-waits-for-a-late-replica"))
    hasty = with_switch(era_switches("kip-966"), "recovery_waits", "off")
    for switches, lost in ((era_switches("kip-966"), 0), (hasty, 300)):
        directory = play(tmp_path, scenario, "kip-966", switches=switches)
        assert problems(directory) == []
        assert len(lost_records_of(directory)) == lost


def test_a_list_for_a_former_life_that_is_believed_loses_all_that_was_acknowledged(tmp_path: Path) -> None:
    scenario = load_scenario(find_scenario("zookeeper/list-of-a-former-life"))
    unfenced = with_rule(era_rules("kip-550-zk"), "control_broker_epoch_check", "off")
    directory = play(tmp_path, scenario, "kip-550-zk", switches=unfenced)
    assert problems(directory) == []
    assert len(lost_records_of(directory)) >= 300


def test_below_version_5_of_leader_and_isr_a_list_for_a_former_life_deletes_nothing(tmp_path: Path) -> None:
    # KIP-550 adds containsAllReplicas in version 5. Below protocol 2.2 no broker epoch could refuse a list, and leaders
    # write their ISR themselves, so that one LeaderAndIsr fewer is sent.
    path = find_scenario("zookeeper/list-of-a-former-life")
    last = """\
  - release_newest: {requests: LeaderAndIsr, from: 3, to: 2}
  - until: {intercepted: 6, requests: LeaderAndIsr, from: 3, to: 2}
"""
    text = path.read_text()
    assert last in text
    scenario = read_scenario(path, text.replace(last, ""))
    directory = play(tmp_path, scenario, "kip-550-zk", switches=with_rule(era_rules("kip-550-zk"), PROPERTY, "2.1"))
    assert problems(directory) == []
    assert len(lost_records_of(directory)) == 0


def test_a_change_is_acknowledged_and_never_written_by_the_kip_alone(tmp_path: Path) -> None:
    scenario = load_scenario(find_scenario("zookeeper/acknowledged-and-never-written"))
    assert problems(play(tmp_path, scenario, "kip-550-zk", switches=era_rules("kip-550-zk"))) == []
    late = with_rule(era_rules("kip-550-zk"), "isr_settled_by", "answer")
    [problem] = problems(play(tmp_path, scenario, "kip-550-zk", switches=late))
    assert "intercepted: 1, responses: AlterPartition" in problem


def test_a_run_leaves_what_a_run_on_processes_leaves(tmp_path: Path) -> None:
    scenario = load_scenario(find_scenario("kip-966/last-replica-standing"))
    directory = play(tmp_path, scenario, "kafka-3.9")
    names = {path.name for path in directory.iterdir()}
    assert names >= {"scenario.yaml", "plan.yaml", "cluster.yaml", "events", "history.jsonl", "nodes", "run.log"}
    assert (directory.parent / "latest").resolve() == directory
    assert read_cluster_file(directory / "cluster.yaml").switches == era_switches("kafka-3.9")
    again = load_scenario(directory / "plan.yaml")
    assert [type(step.action) for step in again.steps] == [type(step.action) for step in scenario.steps]
    assert lost_records_of(play(tmp_path / "again", again, "kafka-3.9")) == lost_records_of(directory)


def test_a_seed_decides_everything(tmp_path: Path) -> None:
    scenario = read_scenario(
        tmp_path / "broken.yaml",
        f"{BROKEN}  - until: {{acked: 50}}\n  - power_loss: {{nodes: [0, 1], keep: prefix}}\n"
        "  - start: {node: 0}\n  - start: {node: 1}\n  - until: {partition: all, isr: [0, 1]}\n",
    )

    def evidence(store: str, seed: int) -> dict[str, bytes]:
        directory = play(tmp_path / store, scenario, "kip-966", seed=seed)
        assert problems(directory) == []
        found = {path.name: path.read_bytes() for path in (*directory.glob("events/*"), directory / "history.jsonl")}
        # cluster.yaml says when the run was played, by the calendar: so do its digest, and the digest of that line.
        dated = re.compile(rb'.*("file":"cluster.yaml"|"type":"FileSealed","cause_id":"harness").*\n')
        return {name: dated.sub(b"", content) for name, content in found.items()}

    assert evidence("first", 1) == evidence("second", 1)
    assert evidence("first", 1) != evidence("other", 2)


def test_a_missed_barrier_ends_the_steps_and_is_reported(tmp_path: Path) -> None:
    scenario = read_scenario(
        tmp_path / "broken.yaml",
        f"{BROKEN}  - until: {{partition: all, leader: 1, within: 2 s}}\n  - kill: {{node: 0}}\n",
    )
    (problem,) = problems(play(tmp_path, scenario, "kip-966"))
    assert "not reached within 2 s; seen: orders-0 leader=0" in problem


def test_no_round_is_begun_when_the_time_of_all_is_over(tmp_path: Path) -> None:
    inner = "{every: {period: 1 s, for: 4 s, do: [{until: {elapsed: 3 s}}]}}"
    steps = f"  - every: {{period: 2 s, for: 10 s, do: [{inner}, {{heal: all}}]}}\n  - until: {{elapsed: 1 ms}}\n"
    scenario = read_scenario(tmp_path / "x.yaml", BROKEN + steps)
    directory = play(tmp_path, scenario, "kip-966")
    assert problems(directory) == []
    log = (directory / "run.log").read_text()
    # Of 4 rounds of 3 s within 4 s two are played, and of 5 rounds of these within 10 s two again.
    assert log.count("{until: {elapsed: 3 s}} ->") == 4
    assert log.count("{heal: all} ->") == 2


def test_faults_that_change_nothing_say_so(tmp_path: Path) -> None:
    scenario = read_scenario(
        tmp_path / "broken.yaml",
        BROKEN
        + "".join(
            f"  - {step}\n"
            for step in (
                "resume: {node: 0}",
                "heal: all",
                "kill: {node: 1}",
                "kill: {node: 1}",
                "pause: {node: 1}",
                "stop: {node: 1}",
                "cut: {from: client, to: 1}",
                "heal: {from: client, to: 1}",
                "start: {node: 1}",
                "start: {node: 1}",
                "pause: {node: 1}",
                "stop: {node: 1}",
                "isolate: {node: controller}",
                "isolate: {node: controller}",
            )
        ),
    )
    played = (play(tmp_path, scenario, "kip-966") / "plan.yaml").read_text()
    seen = [line.rpartition(" # ")[2] for line in played.partition("\nsteps:\n")[2].splitlines()]
    assert [text.startswith(("no-op", "no effect was seen")) for text in seen] == [
        *(True, True, False, True, True, True, True, False, False, True, False, False, False, True)
    ]
    assert "killed, as it did not stop" in seen[11]


@pytest.mark.parametrize("era", ["kip-966", "kafka-3.9-zk"])
@pytest.mark.parametrize("topics", ["[]", "[{name: orders, replicas: [[0, 1]]}]"])
def test_clients_work_with_a_topic_that_a_step_makes(topics: str, era: str, tmp_path: Path) -> None:
    scenario = read_scenario(
        tmp_path / "made.yaml",
        re.sub(r"topics: .*", f"topics: {topics}", BROKEN)
        .replace("rate: 100", "rate: 100, topics: [refunds]")
        .replace("consumers: [{}]", "consumers: [{topics: [refunds]}]")
        + "  - create_topic: {name: refunds, replicas: [[0, 1], [1, 0]]}\n"
        "  - until: {acked: 20, acks: all}\n  - until: {consumed: 20}\n",
    )
    directory = play(tmp_path, scenario, era, switches=era_rules(era))
    assert problems(directory) == []
    assert lost_records_of(directory) == frozenset()
    finals = [line for line in read_history(directory / "history.jsonl") if isinstance(line, FinalReadOperation)]
    read = {f"{line.topic}-{line.partition}" for line in finals if line.error is None}
    assert read >= {"refunds-0", "refunds-1"}


@pytest.mark.parametrize("era", ["kip-966", "kafka-2.6-zk", "kip-550-zk"])
def test_the_plan_that_a_run_leaves_has_the_rules_of_its_era(era: str, tmp_path: Path) -> None:
    scenario = read_scenario(tmp_path / "short.yaml", BROKEN + "  - until: {acked: 1}\n")
    directory = play(tmp_path, scenario, era, switches=era_rules(era))
    rules = load_scenario(directory / "plan.yaml").rules
    assert rules is not None
    assert (rules.era, rules.switches) == (era, era_rules(era))
