"""Stories of clusters with several controllers: a failover in the middle of something, and what is heard late."""

from typing import TypeVar

import pytest

from laststand.emulator.core import events
from laststand.emulator.core.broker.kraft.controller_channel import ControllerChannel
from laststand.emulator.core.disk import Keep
from laststand.emulator.core.types import BrokerId, NodeId, Way
from laststand.emulator.plan import actions
from laststand.emulator.plan.channels import Channel, Link
from laststand.emulator.plan.fields import PRODUCER_ALL
from laststand.emulator.plan.plan import parse_plan
from laststand.emulator.plan.power import DiskLoss
from laststand.emulator.simulator.run.journal import Journal
from laststand.emulator.simulator.run.simulation import Simulation
from laststand.emulator.simulator.search.explorer import SweepOptions
from laststand.emulator.simulator.search.sweep import sweep

EventT = TypeVar("EventT", bound=events.Event)

_NOTHING_UNSYNCED = DiskLoss(keep=Keep.NONE, seed=1)
_PARTITION = "topic orders replicas=(0,1,2) min.insync.replicas=2"


class Story:
    """A cluster with three controllers that serves, and what it writes."""

    def __init__(self, *properties: str) -> None:
        plan = parse_plan(f"cluster brokers=3 controllers=3 {' '.join(properties)}\n{_PARTITION}\n")
        self.journal = Journal()
        self.simulation = Simulation(plan, journal=self.journal)
        self.simulation.begin()
        self.cluster = self.simulation.cluster
        (self.partition,) = plan.partitions

    @property
    def active(self) -> NodeId:
        return self.cluster.metadata_node.node_id

    def play(self, *played: actions.Action) -> None:
        for action in played:
            assert self.simulation.play(action), action

    def wait(self, duration_ms: int) -> None:
        self.play(actions.Wait(duration_ms=duration_ms))

    def produce(self) -> None:
        self.play(actions.Produce(partition=self.partition, producer=PRODUCER_ALL, records=1))

    def links_between_controllers(self, controller: NodeId) -> list[Link[NodeId]]:
        others = [node for node in self.cluster.metadata_nodes if node != controller]
        return [link for other in others for link in (Link(controller, other), Link(other, controller))]

    def fail_over(self) -> NodeId:
        """Cuts the active controller off from the others; returns the one that is active then."""
        old = self.active
        for link in self.links_between_controllers(old):
            self.play(actions.Cut(link=link))
        assert self.cluster.run_until(lambda: self.active != old, within_ms=5_000)
        return self.active

    def written(self, kind: type[EventT]) -> list[tuple[NodeId, EventT]]:
        return [(entry.node_id, entry.event) for entry in self.journal.entries if isinstance(entry.event, kind)]

    def finish(self) -> None:
        """Heals and checks everything."""
        self.simulation.finish()
        assert self.simulation.outcome().findings == (), self.simulation.outcome().findings[0].sentence


def test_a_controller_that_was_not_there_is_added_and_counts() -> None:
    story = Story("standby_controllers=1")
    lost, added, brokers = NodeId(102), NodeId(103), (NodeId(0), NodeId(1))
    story.wait(1_000)
    assert story.cluster.metadata_nodes[added].core is None
    story.play(actions.Kill(nodes=(lost,)), actions.RemoveVoter(node=lost), actions.Start(nodes=(added,)))
    story.wait(500)
    assert story.cluster.metadata_nodes[added].committed_end_offset == story.cluster.committed_end_offset
    story.play(actions.AddVoter(node=added))
    story.wait(500)
    first = story.active
    story.play(actions.Kill(nodes=(first,)))
    assert story.cluster.run_until(lambda: story.active != first, within_ms=5_000), "two of 100, 101 and 103 elect"
    story.play(actions.Kill(nodes=(NodeId(2),)))
    assert story.cluster.run_until(
        lambda: set(story.cluster.image.partitions[story.partition].isr) == set(brokers), within_ms=5_000
    ), "and commit"
    story.finish()


def test_two_machines_take_the_majority_of_the_controllers_along() -> None:
    def isr_after(*properties: str) -> tuple[int, ...]:
        story = Story(*properties)
        story.play(actions.Kill(nodes=(NodeId(1), NodeId(2))))
        story.produce()
        story.wait(3_000)
        isr = story.cluster.image.partitions[story.partition].isr
        story.finish()
        return tuple(isr)

    assert isr_after() == (0,), "the leader goes on alone"
    assert isr_after("combined=true") == (0, 1, 2), "nobody is left who could take the others out"


@pytest.mark.parametrize("node", [NodeId(0), NodeId(100)])
def test_a_process_with_both_roles_is_killed_paused_and_started_as_one(node: NodeId) -> None:
    story = Story("combined=true")
    broker, controller = story.cluster.nodes[BrokerId(NodeId(0))], story.cluster.metadata_nodes[NodeId(100)]
    story.play(actions.Pause(nodes=(node,)))
    assert broker.is_paused
    assert controller.is_paused
    story.play(actions.Resume(nodes=(node,)), actions.Kill(nodes=(node,)))
    assert broker.core is None
    assert controller.core is None
    assert {faulted.nodes for _, faulted in story.written(events.FaultInjected)} == {(0,), (100,)}, "both are on record"
    story.play(actions.Start(nodes=(node,)))
    assert broker.core is not None
    assert controller.core is not None
    story.play(actions.PowerLoss(nodes=(node,), loss=_NOTHING_UNSYNCED), actions.Start(nodes=(node,)))
    story.finish()


def test_a_process_with_both_roles_stops_its_broker_before_its_controller() -> None:
    story = Story("combined=true")
    broker, controller = story.cluster.nodes[BrokerId(NodeId(0))], story.cluster.metadata_nodes[NodeId(100)]
    story.play(actions.Stop(nodes=(NodeId(100),)))
    assert story.cluster.run_until(lambda: broker.core is None, within_ms=5_000)
    assert controller.core is not None
    assert story.cluster.run_until(lambda: controller.core is None, within_ms=5_000)
    ends = [event.end for _, event in story.written(events.IncarnationEnded)]
    assert ends == [events.IncarnationEnd.STOPPED] * 2
    story.finish()


def test_a_process_with_both_roles_ends_when_one_of_them_does() -> None:
    story = Story("combined=true")
    broker, controller = story.cluster.nodes[BrokerId(NodeId(0))], story.cluster.metadata_nodes[NodeId(100)]
    story.cluster.processes.end(controller, events.IncarnationEnd.UNEXPECTED)
    assert broker.core is None


def test_a_process_whose_broker_has_no_room_does_not_run_with_its_controller_alone() -> None:
    story = Story("combined=true")
    broker, controller = story.cluster.nodes[BrokerId(NodeId(0))], story.cluster.metadata_nodes[NodeId(100)]
    story.play(actions.DiskFull(nodes=(NodeId(0),)))
    story.produce()
    assert story.cluster.run_until(lambda: broker.core is None, within_ms=5_000)
    assert controller.core is None
    story.play(actions.Start(nodes=(NodeId(100),)))
    assert broker.core is None
    assert controller.core is None
    story.play(actions.DiskFull(nodes=(NodeId(0),), state=actions.Switched.OFF), actions.Start(nodes=(NodeId(0),)))
    assert broker.core is not None
    assert controller.core is not None
    story.finish()


def test_a_controller_that_refuses_its_disk_takes_its_broker_along() -> None:
    story = Story("combined=true")
    broker, controller = story.cluster.nodes[BrokerId(NodeId(2))], story.cluster.metadata_nodes[NodeId(102)]
    story.wait(500)
    story.play(actions.Kill(nodes=(NodeId(2),)), actions.LoseQuorumState(nodes=(NodeId(102),)))
    assert not story.simulation.play(actions.Start(nodes=(NodeId(2),)))
    assert broker.core is None
    assert controller.core is None


def test_a_process_that_still_stops_is_not_started() -> None:
    story = Story("combined=true")
    broker, controller = story.cluster.nodes[BrokerId(NodeId(0))], story.cluster.metadata_nodes[NodeId(100)]
    story.play(actions.Stop(nodes=(NodeId(0),)))
    assert story.cluster.run_until(lambda: broker.core is None, within_ms=5_000)
    assert controller.core is not None
    assert not story.simulation.play(actions.Start(nodes=(NodeId(0),)))
    assert story.cluster.run_until(lambda: controller.core is None, within_ms=5_000)
    story.play(actions.Start(nodes=(NodeId(0),)))
    assert broker.incarnation == controller.incarnation == 1
    story.finish()
    assert broker.incarnation == controller.incarnation == 1


def test_a_process_that_still_stops_at_the_end_is_started_as_a_whole() -> None:
    story = Story("combined=true")
    broker, controller = story.cluster.nodes[BrokerId(NodeId(0))], story.cluster.metadata_nodes[NodeId(100)]
    story.play(actions.Stop(nodes=(NodeId(0),)))
    assert story.cluster.run_until(lambda: broker.core is None, within_ms=5_000)
    story.finish()
    assert broker.incarnation == controller.incarnation == 1


def test_a_crash_within_a_turn_takes_the_power_of_all_in_the_process() -> None:
    story = Story("combined=true")
    broker, controller = story.cluster.nodes[BrokerId(NodeId(0))], story.cluster.metadata_nodes[NodeId(100)]
    story.play(actions.CrashWithin(nodes=(NodeId(0),), after_effects=1, loss=_NOTHING_UNSYNCED))
    story.produce()
    assert story.cluster.run_until(lambda: broker.core is None, within_ms=5_000)
    assert controller.core is None
    assert [fault.nodes for _, fault in story.written(events.FaultInjected)] == [(0,), (100,)]
    story.finish()


def test_a_bug_in_an_operation_is_a_finding_and_on_record(monkeypatch: pytest.MonkeyPatch) -> None:
    story = Story()
    monkeypatch.setattr(story.cluster.controller, "step", lambda *_, **__: 1 / 0)
    assert not story.simulation.play(actions.Wait(duration_ms=5_000)), "a broker's heartbeat meets the bug"
    assert [alarm.check_id for alarm in story.simulation.findings()] == ["Exception"]
    assert {failed.error for _, failed in story.written(events.OperationFailed)} == {
        "ZeroDivisionError('division by zero')"
    }


def test_a_process_with_both_roles_has_one_network() -> None:
    story = Story("combined=true")
    network, first = story.cluster.network, story.active
    broker = NodeId(first - 100)
    others = {NodeId(each) for each in (0, 1, 2, 100, 101, 102)} - {broker, first}
    outward = {pair for one in (broker, first) for other in others for pair in (Link(one, other), Link(other, one))}
    story.play(actions.Isolate(nodes=(broker,), clients=actions.Clients.CONNECTED))
    assert network.cuts == outward, "what the two say to each other does not leave the machine"
    assert {faulted.nodes for _, faulted in story.written(events.FaultInjected)} == {(broker,), (first,)}
    assert story.cluster.run_until(lambda: story.active != first, within_ms=5_000), "its controller is cut off, too"
    story.play(actions.HealNodes(nodes=(first,)))
    assert not network.cuts
    story.play(actions.Isolate(nodes=(broker,), clients=actions.Clients.CONNECTED, roles=actions.Roles.NAMED))
    assert all(broker in link for link in network.cuts)
    assert Link(broker, first) in network.cuts
    story.finish()


def test_a_cut_between_two_machines_is_one_between_all_that_they_run() -> None:
    story = Story("combined=true")
    network = story.cluster.network
    link = Link(NodeId(0), NodeId(1))
    ends = [(0, 1), (0, 101), (100, 1), (100, 101)]
    story.play(actions.Cut(link=link))
    assert network.cuts == {Link(NodeId(source), NodeId(target)) for source, target in ends}
    story.play(actions.HealLink(link=link), actions.Cut(link=link, roles=actions.Roles.NAMED))
    assert network.cuts == {link}
    story.finish()


def test_a_controller_that_nobody_starts_stays_down_and_keeps_nobody_waiting() -> None:
    story = Story("standby_controllers=2")
    story.fail_over()
    story.finish()
    assert [story.cluster.is_awaited(node) for node in story.cluster.metadata_nodes] == [False] * 3 + [True] * 2


def test_leaders_serve_on_while_controllers_fail_over() -> None:
    story = Story()
    first = story.active
    story.play(actions.Kill(nodes=(first,)))
    story.produce()
    assert story.cluster.run_until(lambda: story.active != first, within_ms=1_000)
    story.wait(500)
    assert not any(broker.fenced for broker in story.cluster.image.brokers.values())
    registered = story.written(events.BrokerRegistered)
    assert len(registered) == 3, "a failover takes no registration"
    story.finish()
    assert story.simulation.outcome().acks > 0


def test_all_controllers_lose_power_and_nothing_committed_is_lost() -> None:
    story = Story()
    before = story.cluster.committed_end_offset
    image = dict(story.cluster.image.partitions)
    voters = tuple(story.cluster.metadata_nodes)
    loss = actions.PowerLoss(nodes=voters, loss=_NOTHING_UNSYNCED)
    story.play(loss, actions.Start(nodes=voters))
    story.wait(3_000)
    assert story.cluster.committed_end_offset > before
    assert dict(story.cluster.image.partitions).keys() == image.keys()
    story.finish()


def test_a_controller_that_fails_over_in_the_middle_of_an_unclean_recovery_begins_it_again() -> None:
    """KIP-966: "every controller failover will result in a new unclean recovery"."""
    story = Story("unclean.recovery.manager.enabled=true", "unclean.recovery.timeout.ms=60000")
    story.produce()
    story.wait(200)
    brokers = tuple(NodeId(number) for number in range(3))
    for broker in brokers:
        story.play(actions.PowerLoss(nodes=(broker,), loss=_NOTHING_UNSYNCED))
        story.wait(50)
    asked_last = brokers[2]
    for controller in story.cluster.metadata_nodes:
        story.play(actions.Hold(channel=Channel(controller, asked_last, "GetReplicaLogInfo", Way.REQUEST)))
    story.play(actions.Start(nodes=brokers))
    story.wait(1_500)
    state = story.cluster.state(story.partition)
    assert state is not None
    assert state.leader is None, "it waits for the last replica"
    ((first, _),) = story.written(events.UncleanRecoveryStarted)

    story.play(actions.Kill(nodes=(first,)))
    story.wait(1_500)
    (_, (second, _)) = story.written(events.UncleanRecoveryStarted)
    assert second == story.active != first

    story.play(actions.Start(nodes=(first,)))
    story.finish()
    elected = story.written(events.UncleanLeaderElected)
    assert [node_id for node_id, _ in elected] == [second]


def test_an_isr_change_that_a_controller_cannot_commit_is_made_by_its_successor() -> None:
    """KIP-497: "if the controller fails before applying the changes, a new controller will be elected"; T1 of R11."""
    story = Story("broker.session.timeout.ms=3000")
    old = story.active
    for link in story.links_between_controllers(old):
        story.play(actions.Cut(link=link))
    story.play(actions.Cut(link=Link(NodeId(2), NodeId(0))))
    story.produce()
    assert story.cluster.run_until(lambda: story.active != old, within_ms=5_000)
    acked = story.simulation.outcome().acks
    assert acked == 0, "the smaller ISR is of nobody's metadata, so that the leader waits"
    story.wait(3_500)
    changes = story.written(events.PartitionChanged)
    assert [node_id for node_id, change in changes if change.isr == (0, 1)] == [story.active]
    assert story.simulation.outcome().acks == 1
    story.finish()


@pytest.mark.parametrize("is_guarded", [True, False])
def test_the_answer_of_a_deposed_controller_that_arrives_late_is_not_heard(
    monkeypatch: pytest.MonkeyPatch, *, is_guarded: bool
) -> None:
    """Q12, Q13: a broker that has heard of a controller epoch believes no lower one."""
    if not is_guarded:
        monkeypatch.setattr(ControllerChannel, "is_current", lambda *_: True)
    story = Story("broker.session.timeout.ms=3000")
    old = story.active
    answers = Channel(NodeId(0), old, "AlterPartition", Way.RESPONSE)
    story.play(actions.Hold(channel=answers), actions.Cut(link=Link(NodeId(2), NodeId(0))))
    story.produce()
    assert story.cluster.run_until(lambda: bool(story.cluster.network.held[answers]), within_ms=2_000)
    new = story.fail_over()
    broker = story.cluster.nodes[BrokerId(NodeId(0))].broker
    assert broker is not None
    story.wait(400)

    heard = len(story.written(events.AlterPartitionAnswered))
    story.play(actions.Release(channel=answers))
    story.wait(1)
    late = story.written(events.AlterPartitionAnswered)[heard:]
    assert (late == []) is is_guarded
    assert story.active == new
    story.finish()


@pytest.mark.parametrize("profile", ["quorum", "quorum-disks", "quorum-voters", "quorum-combined"])
def test_schedules_with_several_controllers_find_nothing_while_every_rule_is_on(profile: str) -> None:
    report = sweep(iter(range(4)), SweepOptions(profiles=(profile,)), keep_going=True)
    assert [str(finding) for schedule in report.findings for finding in schedule.outcome.findings] == []
    assert report.acks > 5 * 4


@pytest.mark.parametrize(
    ("rule", "profile", "first", "checks"),
    [
        ("directory_ids", "quorum-disks", 6, {"Q3", "Q5"}),
        ("commit_own_epoch", "quorum", 0, {"Q7"}),
        ("one_vote_per_epoch", "quorum", 1, {"Q1"}),
        ("missing_state_stops", "quorum-disks", 12, {"Q6"}),
        ("pre_vote", "quorum", 16, {"Q8"}),
        ("check_quorum", "quorum", 1, {"Q9"}),
        ("change_follows_commit", "quorum-voters", 2, {"Q3"}),
    ],
)
def test_a_rule_that_is_switched_off_is_found_in_whole_clusters(
    rule: str, profile: str, first: int, checks: set[str]
) -> None:
    # The seeds before the first find nothing. Where a change of the simulator moves the finding, a later one has it.
    report = sweep(iter(range(first, first + 20)), SweepOptions(switches=((rule, "off"),), profiles=(profile,)))
    (schedule,) = report.findings
    assert checks <= {finding.check_id for finding in schedule.outcome.findings}
