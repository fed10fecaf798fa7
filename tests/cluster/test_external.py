"""Laststand's own brokers, played as a cluster that somebody else runs, lose what they lose."""

import sys
from pathlib import Path

import pytest

from laststand.cli.main import cli
from laststand.emulator.verification.judge_here import judge_here
from laststand.standing_cluster import StandingCluster
from tests.cluster.settings import QUICK

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]

HOOKS = """\
nodes: {{0: '0', 1: '1', 2: '2'}}
hooks:
  isolate:
    command: {laststand} chaos isolate {{name}} --clients {{clients}} --dir {cluster}
    effective_when: '{laststand} status --dir {cluster} | grep -q "fault: isolate on node "{{name}}" "'
  power_loss: {{command: '{laststand} chaos power-loss {{name}} --keep {{keep}} --dir {cluster}'}}
  start: {{command: '{laststand} chaos start {{name}} --dir {cluster}'}}
  heal:
    command: {laststand} chaos heal --dir {cluster}
    effective_when: '! {laststand} status --dir {cluster} | grep -q "fault: isolate"'
"""


@pytest.mark.parametrize(("era", "loses"), [("kafka-3.9", "records"), ("kip-966", "none")])
def test_a_cluster_is_found_to_lose_the_records_that_it_knows_itself_to_have_lost(
    era: str, loses: str, tmp_path: Path
) -> None:
    with StandingCluster(store=tmp_path / "store", kafka=True, settings=QUICK, era=era) as cluster:
        hooks = tmp_path / "hooks.yaml"
        program = f"{sys.executable} -m laststand.cli"
        hooks.write_text(HOOKS.format(laststand=program, cluster=cluster.directory))
        arguments = ["run", "kip-966/last-replica-standing", "--driver", "external", "--era", era, "--keep-topics"]
        arguments += ["--bootstrap", cluster.bootstrap_servers, "--hooks", str(hooks), "--judge", "here"]
        cli.main([*arguments, "--out", str(tmp_path / "out")], standalone_mode=False)
        own = cluster.verify()
    [run] = (tmp_path / "out" / "kip-966" / "last-replica-standing").glob("2*")
    report = judge_here(run).report
    assert report.doubts == ()
    assert (report.lost_records > 0) is (loses == "records")
    # Its own oracle leaves out what was acknowledged while a cut may have swallowed the answer: the client knows.
    assert 0 <= report.lost_records - own.lost_records <= own.lost_records // 10
