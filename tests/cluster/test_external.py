"""Laststand's own brokers, played as a cluster that somebody else runs, lose what they lose."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from laststand.chaos.scenario.scenario_file import load_scenario
from laststand.cli.main import cli
from laststand.cli.program.exit_codes import ExitCode
from laststand.emulator.cluster.hook_presets import PRESETS, preset
from laststand.emulator.verification.judge_here import judge_here
from laststand.emulator.verification.verdict.report import Verdict
from laststand.standing_cluster import StandingCluster
from tests.cluster.hook_program import hook_program
from tests.cluster.settings import QUICK, patient_copy
from tests.cluster.signals import default_signals
from tests.cluster.survivors import DEADLINE_S
from tests.fake_kafka import FakeCluster, Fault
from tests.fake_programs import write_fakes

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]

HOOKS = """\
nodes: {{0: '0', 1: '1', 2: '2'}}
hooks:
  isolate:
    within: 120 s
    command: {laststand} chaos isolate {{name}} --clients {{clients}} --dir {cluster}
    effective_when: '{laststand} status --dir {cluster} | grep -q "fault: isolate on node "{{name}}" "'
  power_loss: {{command: '{laststand} chaos power-loss {{name}} --keep {{keep}} --dir {cluster}', within: 120 s}}
  start: {{command: '{laststand} chaos start {{name}} --dir {cluster}', within: 120 s}}
  heal:
    within: 120 s
    command: {laststand} chaos heal --dir {cluster}
    effective_when: '! {laststand} status --dir {cluster} | grep -q "fault: isolate"'
"""


OF_A_KNOWN_LOSS = "kip-966/reassignment-cancelled-at-any-price"
STOP_AND_START = """\
nodes: {{0: '0', 1: '1', 2: '2', 3: '3'}}
hooks:
  stop: {{command: '{laststand} chaos stop {{name}} --dir {cluster}', within: 120 s}}
  start: {{command: '{laststand} chaos start {{name}} --dir {cluster}', within: 120 s}}
"""

FAKE_HOOKS = """\
nodes: {0: '0', 1: '1'}
hooks:
  kill: {command: 'touch down-{name}'}
  start: {command: 'rm -f down-{name}'}
"""

ONE_KILL = """\
name: one-kill
title: One broker is killed
cluster: {brokers: 2}
topics: [{name: orders, replicas: [[0, 1]]}]
workload: {producers: [{acks: all, rate: 1000}], consumers: [{}]}
steps:
  - until: {acked: 1500, acks: all}
  - kill: {node: 0}
  - until: {partition: orders-0, leader: 1}
  - until: {acked: 500, acks: all}
  - start: {node: 0}
  - until: {partition: orders-0, isr: [0, 1]}
"""


def one_kill(cluster: FakeCluster, folder: Path) -> list[str]:
    """Returns the arguments of a run of ``ONE_KILL``."""
    (folder / "one-kill.yaml").write_text(ONE_KILL)
    arguments = ["run", str(folder / "one-kill.yaml"), "--driver", "external", "--bootstrap", cluster.bootstrap]
    return [*arguments, "--hooks", str(folder / "hooks.yaml"), "--judge", "here", "--out", str(folder / "out")]


@pytest.mark.parametrize(
    ("fault", "broker_ids", "verdict", "checks"),
    [
        (Fault(), (0, 1), Verdict.VALID, set()),
        (Fault(), (1, 7), Verdict.VALID, set()),
        (Fault(delay_s=0.2), (0, 1), Verdict.VALID, set()),
        (Fault(drops_one_in=1000), (0, 1), Verdict.VIOLATION, {"D1", "D14", "C2"}),
        (Fault(stale_records=200), (0, 1), Verdict.VIOLATION, {"C3"}),
    ],
    ids=["correct", "other-ids", "slow", "lossy", "stale"],
)
def test_a_cluster_is_judged_by_what_its_clients_were_answered(
    fault: Fault, broker_ids: tuple[int, int], verdict: Verdict, checks: set[str], tmp_path: Path
) -> None:
    names = dict(enumerate(map(str, broker_ids)))
    (tmp_path / "hooks.yaml").write_text(FAKE_HOOKS.replace("{0: '0', 1: '1'}", str(names)))
    cluster = FakeCluster(tmp_path, broker_ids=broker_ids, fault=fault)
    with cluster.running():
        cli.main(one_kill(cluster, tmp_path), standalone_mode=False)
    [run] = (tmp_path / "out" / "one-kill").glob("2*")
    report = judge_here(run).report
    assert report.doubts == ()
    assert report.lost_records == cluster.dropped
    assert (report.verdict, {each.check_id for each in report.violated()}) == (verdict, checks)


@pytest.mark.parametrize("name", [each for each in PRESETS if each != "toxiproxy"])
def test_a_run_by_hooks_of_a_preset(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{write_fakes(tmp_path)}:{os.environ['PATH']}")
    (tmp_path / "hooks.yaml").write_text(preset(name, ("kafka-0", "kafka-1")))
    cluster = FakeCluster(tmp_path, broker_ids=(0, 1), fault=Fault())
    with cluster.running():
        code = cli.main(one_kill(cluster, tmp_path), standalone_mode=False)
    [run] = (tmp_path / "out" / "one-kill").glob("2*")
    assert (code, judge_here(run).report.verdict) == (ExitCode.VALID, Verdict.VALID)


def test_an_interrupted_run_starts_what_it_has_killed_and_deletes_its_topics(tmp_path: Path) -> None:
    (tmp_path / "hooks.yaml").write_text(
        FAKE_HOOKS.replace("start: {", "start: {effective_when: 'test ! -e down-{name}', ")
    )
    cluster = FakeCluster(tmp_path, broker_ids=(0, 1), fault=Fault())
    with cluster.running():
        arguments = [sys.executable, "-m", "laststand.cli", *one_kill(cluster, tmp_path)]
        with default_signals(), subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True) as run:
            deadline = time.monotonic() + DEADLINE_S
            while not (tmp_path / "down-0").exists():
                assert time.monotonic() < deadline
                assert run.poll() is None
                time.sleep(0.05)
            run.send_signal(signal.SIGINT)
            _, err = run.communicate(timeout=DEADLINE_S)
    assert run.returncode == 128 + signal.SIGINT, err
    assert "Traceback" not in err
    assert not (tmp_path / "down-0").exists()
    assert cluster.topics == []


@pytest.mark.parametrize(
    ("kill", "reason"),
    [
        ("{command: 'echo no such service; exit 3'}", "hook kill failed with exit code 3: .*: no such service"),
        ("{command: 'sleep 300', within: 1 s}", "hook kill was not seen to take effect within 1 s: sleep 300"),
        (
            "{command: 'true', within: 1 s}",
            "hook kill was not seen to take effect within 1 s: true: broker 0 still answers",
        ),
    ],
    ids=["fails", "hangs", "does-nothing"],
)
def test_a_hook_that_does_not_do_its_work_leaves_the_run_unknown(kill: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "hooks.yaml").write_text(FAKE_HOOKS.replace("{command: 'touch down-{name}'}", kill))
    cluster = FakeCluster(tmp_path, broker_ids=(0, 1), fault=Fault())
    with cluster.running():
        code = cli.main(one_kill(cluster, tmp_path), standalone_mode=False)
    [run] = (tmp_path / "out" / "one-kill").glob("2*")
    report = judge_here(run).report
    assert code == ExitCode.UNKNOWN
    assert report.verdict is Verdict.UNKNOWN
    [doubt] = report.unknown_reasons
    assert re.search(reason, doubt), doubt
    assert "\n" not in doubt


@pytest.mark.usefixtures("judged_here")
@pytest.mark.parametrize(("era", "loses"), [("kafka-3.9", "records"), ("kip-966", "none")])
def test_a_cluster_is_found_to_lose_the_records_that_it_knows_itself_to_have_lost(
    era: str, loses: str, tmp_path: Path
) -> None:
    with (
        StandingCluster(store=tmp_path / "store", kafka=True, settings=QUICK, era=era) as cluster,
        hook_program(tmp_path) as program,
    ):
        hooks = tmp_path / "hooks.yaml"
        hooks.write_text(HOOKS.format(laststand=program, cluster=cluster.directory))
        arguments = [
            "run",
            str(patient_copy("kip-966/last-replica-standing", tmp_path, slower=5)),
            "--driver",
            "external",
            "--era",
            era,
            "--keep-topics",
        ]
        arguments += ["--bootstrap", cluster.bootstrap_servers, "--hooks", str(hooks), "--judge", "here"]
        cli.main([*arguments, "--out", str(tmp_path / "out")], standalone_mode=False)
        own = cluster.verify()
    [run] = (tmp_path / "out" / "kip-966" / "last-replica-standing").glob("2*")
    report = judge_here(run).report
    assert report.doubts == ()
    assert (report.lost_records > 0) is (loses == "records")
    # Its own oracle leaves out what was acknowledged while a cut may have swallowed the answer: the client knows.
    assert own.lost_records <= report.lost_records
    assert (own.lost_records > 0) is (loses == "records")


@pytest.mark.usefixtures("judged_here")
def test_where_the_loss_is_determined_either_driver_counts_the_same(tmp_path: Path) -> None:
    # An era that loses nothing is in the test above.
    era = "kafka-4.2"
    path = patient_copy(OF_A_KNOWN_LOSS, tmp_path)
    judged = {}
    settings = dict(load_scenario(path).properties)
    with (
        StandingCluster(store=tmp_path / "store", kafka=True, brokers=4, settings=settings, era=era) as cluster,
        hook_program(tmp_path) as program,
    ):
        (tmp_path / "hooks.yaml").write_text(STOP_AND_START.format(laststand=program, cluster=cluster.directory))
        external = ["--driver", "external", "--keep-topics", "--hooks", str(tmp_path / "hooks.yaml")]
        external += ["--bootstrap", cluster.bootstrap_servers]
        for driver, options in (("external", external), ("process", [])):
            arguments = ["run", str(path), "--era", era, "--judge", "here", "--out", str(tmp_path / driver)]
            cli.main([*arguments, *options], standalone_mode=False)
            [run] = (tmp_path / driver / OF_A_KNOWN_LOSS).glob("2*")
            judged[driver] = judge_here(run).report
        own = cluster.verify()
    assert [each.doubts for each in judged.values()] == [(), ()]
    assert [each.lost_records for each in (*judged.values(), own)] == [50] * 3
