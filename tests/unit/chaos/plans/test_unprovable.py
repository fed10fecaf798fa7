"""A fault on a node that is down would be told as one without effect, so plans with such faults are found."""

import pytest

from chaos.plans.unprovable import unprovable
from emulator.plan.plan import parse_plan

HEAD = "cluster brokers=3 era=kip-966\ntopic orders replicas=(0,1,2) min.insync.replicas=2\n"


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ("kill 0\nwait 2000\ncut 1->2\ncut 1000->1", []),
        ("kill 0\nwait 2000\ncut 1->0", ["cut 1->0"]),
        ("kill 0\nwait 2000\ncut 0->1\nstart 0\nwait 2000\ncut 0->2", ["cut 0->1"]),
        ("kill 0\nwait 2000\nkill 0,1\nwait 2000\nisolate 1", ["kill 0,1", "isolate 1"]),
        ("kill 100\nwait 100\ncut 0->100", ["cut 0->100"]),
    ],
)
def test_faults_on_nodes_that_are_down_are_found(lines: str, found: list[str]) -> None:
    assert [missing.what for missing in unprovable(parse_plan(HEAD + lines + "\n"))] == found
