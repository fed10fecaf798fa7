"""A fault on a node that is down would be told as one without effect, so plans with such faults are found."""

import pytest

from laststand.chaos.plans.unprovable import unprovable
from laststand.emulator.plan.plan import parse_plan

HEAD = "cluster brokers=3 era=kip-966\ntopic orders replicas=(0,1,2) min.insync.replicas=2\n"


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ("kill 0\nwait 2000\ncut 1->2\ncut 1000->1", []),
        ("kill 0\nwait 2000\ncut 1->0", ["cut 1->0"]),
        ("kill 0\nwait 2000\ncut 0->1\nstart 0\nwait 2000\ncut 0->2", ["cut 0->1"]),
        ("kill 0\nwait 2000\nkill 0,1\nwait 2000\nisolate 1", ["kill 0,1", "isolate 1"]),
        ("kill 0\nwait 2000\nclock 0 rate=950000\nclock 1 rate=950000", ["clock 0 rate=950000"]),
        ("kill 100\nwait 100\ncut 0->100", ["cut 0->100"]),
        ("pause 1\nwait 100\ncut 1->0\nresume 1\nwait 100\ncut 1->2", ["cut 1->0"]),
        ("isolate 1\nwait 100\ncut 1->0\nheal\nwait 100\ncut 1->2", ["cut 1->0"]),
    ],
)
def test_faults_on_nodes_that_are_down_are_found(lines: str, found: list[str]) -> None:
    assert [missing.what for missing in unprovable(parse_plan(HEAD + lines + "\n"))] == found


def test_a_partition_without_a_possible_leader_at_the_end_is_found() -> None:
    lines = (
        "produce orders-0 acks=all records=5\nwait 500\ncut 1->100\nwait 2000\ncut 2->100\nwait 2000\ncut 0->100\n"
        "wait 2000\npower-loss 2 keep=none\nelr-feature level=0\nwait 100\n"
    )
    assert [missing.what for missing in unprovable(parse_plan(HEAD + lines))] == ["orders-0 in the end"]
