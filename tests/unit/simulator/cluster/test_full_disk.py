"""A process whose disk is full ends at its next write, and again at each start, until somebody makes room."""

from laststand.emulator.core import events
from laststand.emulator.core.types import BrokerId, NodeId, TopicPartition
from laststand.emulator.plan.lines import parse_action
from laststand.emulator.plan.plan import parse_plan
from laststand.emulator.simulator.run.journal import Journal
from laststand.emulator.simulator.run.simulation import Simulation

NAME = TopicPartition("orders", 0)
PLAN = """\
cluster brokers=3 era=kip-966
topic orders replicas=(0,1,2) min.insync.replicas=2
"""
PRODUCE = ("produce orders-0 acks=all records=1", "wait 100")


def test_a_leader_without_room_ends_at_each_start_until_there_is_some() -> None:
    journal = Journal()
    simulation = Simulation(parse_plan(PLAN), journal=journal)
    simulation.begin()
    node = simulation.cluster.nodes[BrokerId(NodeId(0))]

    def play(*lines: str) -> None:
        for line in lines:
            assert simulation.play(parse_action(line)), line

    play("disk-full 0 left=200", *PRODUCE)
    assert node.core is not None, "there was room for one batch"
    play(*PRODUCE, *PRODUCE)
    assert node.core is None
    end_offset = node.disk.logs[NAME].log_end_offset
    play("start 0", "wait 100", "start 0", "wait 100")
    assert node.core is None
    ended = [event for *_, event in journal.entries if isinstance(event, events.IncarnationEnded)]
    assert [(end.ended_incarnation, end.end) for end in ended] == [
        (incarnation, events.IncarnationEnd.KILLED) for incarnation in range(3)
    ]
    play("disk-full 0 state=off", "start 0", "wait 100")
    assert node.core is not None
    assert node.disk.logs[NAME].log_end_offset >= end_offset
    simulation.finish()
    assert not simulation.findings()


def test_an_empty_disk_has_room() -> None:
    simulation = Simulation(parse_plan(PLAN))
    simulation.begin()
    for line in ("disk-full 1", "replace-disk 1", "start 1", "wait 100"):
        assert simulation.play(parse_action(line)), line
    assert simulation.cluster.nodes[BrokerId(NodeId(1))].core is not None
