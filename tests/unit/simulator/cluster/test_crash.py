"""A process that dies within a turn leaves what it had done by then, and nothing that tells of it."""

import pytest

from laststand.emulator.core import effects, events, messages
from laststand.emulator.core.types import BrokerId, CauseId, NodeId, Offset, RequestId, TopicId, TopicPartition
from laststand.emulator.plan import actions
from laststand.emulator.plan.lines import parse_action
from laststand.emulator.plan.plan import parse_plan
from laststand.emulator.simulator.cluster.crash import done_before
from laststand.emulator.simulator.run.journal import Journal
from laststand.emulator.simulator.run.simulation import Simulation

NAME = TopicPartition("orders", 0)
DELETE = effects.DeleteLog(partition=NAME)
CREATE = effects.CreateLog(partition=NAME, topic_id=TopicId("t"))
RESTART = effects.RestartLog(partition=NAME, offset=Offset(3))
APPEND = effects.AppendToLog(partition=NAME, batches=())
EPOCHS = effects.WriteEpochCheckpoint(partition=NAME, epochs=())
CHECKPOINTS = (effects.WriteHighWatermarks(high_watermarks=()), effects.WriteLogCheckpoints())
TOLD = effects.RecordEvent(event=events.NodeStopped(cause_id=CauseId("c")))
ANSWER = effects.SendResponse(
    request_id=RequestId(1), response=messages.ProduceResponse(partitions=()), cause_id=CauseId("c")
)
LOSS = "keep=none kept=0 truncation=kept"


@pytest.mark.parametrize(
    ("line", "effects", "done"),
    [
        ("crash-within 1 after-effects=1", [APPEND, EPOCHS, TOLD, ANSWER], [APPEND]),
        ("crash-within 1 after-effects=2", [APPEND, EPOCHS, TOLD, ANSWER], [APPEND, EPOCHS]),
        ("crash-within 1 after-effects=3", [APPEND, EPOCHS, TOLD, ANSWER], [APPEND, EPOCHS]),
        ("crash-within 1 after-effects=1", [TOLD, ANSWER], None),
        ("crash-within 1 after-effects=1", [*CHECKPOINTS, TOLD], None),
        ("crash-within 1 after-effects=2", [DELETE, CREATE], [DELETE, CREATE]),
        (f"crash-within 1 after-effects=2 {LOSS}", [DELETE, CREATE], [DELETE, CREATE]),
        (f"crash-within 1 after-effects=2 {LOSS} names=undone", [DELETE, CREATE], [DELETE]),
        (f"crash-within 1 after-effects=2 {LOSS} names=undone", [DELETE, CREATE, APPEND], [DELETE]),
        (f"crash-within 1 after-effects=3 {LOSS} names=undone", [DELETE, CREATE, APPEND], [DELETE, CREATE, APPEND]),
        (f"crash-within 1 after-effects=1 {LOSS} names=undone", [RESTART, EPOCHS], [RESTART]),
    ],
)
def test_actions_before_the_crash(line: str, effects: list[effects.Effect], done: list[effects.Effect] | None) -> None:
    crash = parse_action(line)
    assert isinstance(crash, actions.CrashWithin)
    assert done_before(crash, effects) == done


PLAN = """\
cluster brokers=3 era=kip-966
topic orders replicas=(0,1,2) min.insync.replicas=2
"""


def played(*lines: str) -> tuple[Simulation, Journal]:
    journal = Journal()
    simulation = Simulation(parse_plan(PLAN), journal=journal)
    simulation.begin()
    for line in lines:
        assert simulation.play(parse_action(line)), line
    return simulation, journal


@pytest.mark.parametrize(("loss", "end"), [("", 1), (f" {LOSS}", 0)])
def test_a_leader_that_dies_while_it_appends(loss: str, end: int) -> None:
    simulation, journal = played(
        f"crash-within 0 after-effects=1{loss}", "produce orders-0 acks=all records=1", "wait 1"
    )
    node = simulation.cluster.nodes[BrokerId(NodeId(0))]
    assert node.core is None
    assert node.pending_crash is None
    assert node.disk.logs[NAME].log_end_offset == end
    told = [event for *_, event in journal.entries]
    assert not any(isinstance(event, events.BatchAppended) for event in told)
    assert [event.fault for event in told if isinstance(event, events.FaultInjected)] == [
        "power_loss" if loss else "kill"
    ]
    assert any(isinstance(event, events.IncarnationEnded) and event.ended_node == 0 for event in told)
    lost = [event.new_end_offset for event in told if isinstance(event, events.PowerLost)]
    assert lost == ([end] if loss else [])

    assert simulation.play(parse_action("start 0"))
    assert simulation.play(parse_action("wait 600"))
    opened = [event for _, node_id, _, event in journal.entries if isinstance(event, events.LogOpened) and node_id == 0]
    assert opened[-1].log_end_offset == end
    simulation.finish()
    assert simulation.findings() == ()


def test_a_crash_that_did_not_come_is_called_off_at_the_end() -> None:
    simulation, _ = played("crash-within 0 after-effects=1")
    assert not simulation.play(parse_action("crash-within 0 after-effects=2"))
    assert not simulation.play(parse_action("crash-within 7 after-effects=1"))
    simulation.finish()
    assert simulation.cluster.nodes[BrokerId(NodeId(0))].incarnation == 0
    assert simulation.findings() == ()


def test_an_end_of_another_kind_comes_first() -> None:
    simulation, _ = played("crash-within 0 after-effects=1", "kill 0", "start 0", "wait 500")
    assert simulation.cluster.nodes[BrokerId(NodeId(0))].core is not None
