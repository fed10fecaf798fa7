"""What begins is told, and what ends: the words are those of the harness of real processes."""

import pytest
from emulator.simulator.actions import parse_action
from emulator.simulator.faults import Fault, faults_of, mended_by
from emulator.simulator.plan import parse_plan

from emulator.core.events import Event, FaultHealed, FaultInjected
from emulator.core.types import NodeId
from emulator.simulator.journal import Journal
from emulator.simulator.simulation import Simulation

BROKEN = ((NodeId(0), NodeId(1)), (NodeId(1), NodeId(100)), (NodeId(2), NodeId(0)))


@pytest.mark.parametrize(
    ("line", "begun", "ended"),
    [
        ("wait 5", (), ()),
        ("kill 0,1", (Fault("kill", "0"), Fault("kill", "1")), ()),
        ("pause 100", (Fault("pause", "100"),), ()),
        ("resume 1", (), (Fault("pause", "1"),)),
        ("expire 1", (Fault("lose_responses", "1->100"),), (Fault("lose_responses", "1->100"),)),
        ("cut 0->1", (Fault("cut", "0->1"),), ()),
        ("mend 0->1", (), (Fault("cut", "0->1"),)),
        ("reset 0->1", (Fault("cut", "0->1"),), (Fault("cut", "0->1"),)),
        ("rejoin 1", (), (Fault("isolate", "1"), Fault("cut", "0->1"), Fault("cut", "1->100"))),
        ("hold 0->100 Fetch request", (Fault("cut", "0->100"),), ()),
        ("release 0->100 Fetch request", (), (Fault("cut", "0->100"),)),
        ("release 0->100 Fetch request count=1", (), ()),
        ("clock 1 rate=700000", (Fault("pause", "1"),), ()),
        ("clock 1 rate=1000000", (), (Fault("pause", "1"),)),
        ("heal", (), (Fault("all", "all"),)),
    ],
)
def test_what_an_action_begins_and_ends(line: str, begun: tuple[Fault, ...], ended: tuple[Fault, ...]) -> None:
    action = parse_action(line)
    assert faults_of(action) == begun
    assert mended_by(action, broken=BROKEN) == ended


PLAN = """\
cluster brokers=3
topic orders replicas=(0,1,2)
cut 0->1
wait 5
mend 0->1
mend 0->1
pause 2
"""


def test_a_run_tells_of_both_once_and_of_its_own_healing() -> None:
    journal = Journal()
    Simulation(parse_plan(PLAN), journal=journal).play_plan()
    told = [
        (type(event), event.fault, event.target)
        for event in (entry.event for entry in journal.entries)
        if isinstance(event, FaultInjected | FaultHealed)
    ]
    expected: list[tuple[type[Event], str, str]] = [
        (FaultInjected, "cut", "0->1"),
        (FaultHealed, "cut", "0->1"),
        (FaultInjected, "pause", "2"),
        (FaultHealed, "all", "all"),
    ]
    assert told == expected
