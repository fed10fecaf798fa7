"""Nodes of several eras in one simulated cluster: what each says, and what the controller answers."""

from typing import Final

from laststand.emulator.core import events
from laststand.emulator.core.types import BrokerId, NodeId, TopicPartition
from laststand.emulator.plan.lines import parse_action
from laststand.emulator.plan.nodes import CONTROLLER
from laststand.emulator.plan.plan import parse_plan
from laststand.emulator.simulator.actions.performer import perform
from laststand.emulator.simulator.nodes.nodes import HostingBroker
from laststand.emulator.simulator.quorum.controller_node import QuorumControllerNode
from laststand.emulator.simulator.run.journal import Journal
from laststand.emulator.simulator.run.simulation import Simulation
from tests.unit.plan.test_lines import names

ONE: Final = BrokerId(NodeId(1))
PLAN: Final = """\
cluster brokers=3 era={era} leader.recovery.min.ms=2000
topic orders replicas=(0,1,2) min.insync.replicas=2
"""


def begun(*lines: str, era: str = "kip-966", journal: Journal | None = None) -> Simulation:
    simulation = Simulation(parse_plan(PLAN.format(era=era)), journal=journal)
    simulation.begin()
    for line in lines:
        perform(simulation.cluster, parse_action(line, names()))
    return simulation


def restarted(era: str) -> tuple[str, ...]:
    return ("stop 1", "wait 2000", f"start 1 era={era}", "wait 4000")


def is_active(simulation: Simulation, broker_id: BrokerId) -> bool:
    return simulation.cluster.image.brokers[broker_id].is_active


def test_a_node_keeps_the_era_that_it_was_started_with() -> None:
    simulation = begun(*restarted("kafka-4.2"), "kill 1", "start 1")
    assert not simulation.cluster.rules_of(ONE).recovering_gate
    assert simulation.cluster.rules_of(CONTROLLER).recovering_gate


def test_what_a_node_was_given_is_on_record_and_what_it_followed() -> None:
    journal = Journal()
    begun(*restarted("kip-966,recovering_gate=off"), journal=journal)
    recorded = [entry.event for entry in journal.entries]
    given = [each.switches for each in recorded if isinstance(each, events.IncarnationStarted) and each.switches]
    said = [each.switches for each in recorded if isinstance(each, events.NodeStarted) and each.switches]
    assert [switches["recovering_gate"] for switches in given] == ["off"]
    assert given[0] in said


def promises(simulation: Simulation, check_id: str) -> tuple[bool, ...]:
    """Returns whether the cluster promises something, and each broker."""
    cluster = simulation.cluster
    return cluster.promised_by_all(check_id), *(cluster.promised_by_node(check_id, NodeId(node)) for node in range(3))


def test_promises_are_those_of_every_process_so_far_on_whose_rules_they_rest() -> None:
    simulation = begun()
    assert promises(simulation, "M18") == (True, True, True, True)
    for line in restarted("kip-966,recovering_gate=off,stray_cleanup=off,unclean_detection=off"):
        perform(simulation.cluster, parse_action(line, names()))
    assert promises(simulation, "M18") == (False, True, False, True)
    assert promises(simulation, "M15") == (False, True, False, True)
    for line in restarted("kip-966"):
        perform(simulation.cluster, parse_action(line, names()))
    assert promises(simulation, "M18") == (False, True, True, True)  # its own process recovers first
    assert promises(simulation, "M15") == (False, True, False, True)  # its disk has what the one before left
    assert promises(simulation, "M5") == (False, False, False, False)
    assert promises(simulation, "M3") == (True, True, True, True)


def test_what_controllers_promise_ends_with_the_first_of_them_that_does_not() -> None:
    simulation = begun()
    assert simulation.cluster.promised_by_node("M21", None)
    for era in ("kip-966,min_isr_per_partition=off", "kip-966"):
        for line in ("stop 100", f"start 100 era={era}", "wait 2000"):
            perform(simulation.cluster, parse_action(line, names()))
        assert not simulation.cluster.promised_by_node("M21", None)


def test_a_broker_that_lacks_a_finalized_feature_is_not_let_in() -> None:
    assert not is_active(begun(*restarted("kafka-3.9")), ONE)
    assert not is_active(begun(*restarted("kafka-4.2,elr=off")), ONE)
    assert is_active(begun(*restarted("kafka-4.2")), ONE)


def downgrade(feature: str, level: str) -> str:
    return f"update_feature: {{feature: {feature}, level: {level}, upgrade_type: SAFE_DOWNGRADE}}"


def test_a_broker_comes_in_once_the_levels_that_it_lacks_are_gone() -> None:
    without_elr = (downgrade("eligible.leader.replicas.version", "0"), "wait 100")
    assert not is_active(begun(*without_elr, *restarted("kafka-3.9")), ONE)
    lowered = (*without_elr, downgrade("metadata.version", "3.9-IV0"), "wait 100")
    assert is_active(begun(*lowered, *restarted("kafka-3.9")), ONE)


def runs(simulation: Simulation) -> bool:
    return simulation.cluster.metadata_node.core is not None


def controller_restarted(era: str) -> tuple[str, ...]:
    return "kill 100", f"start 100 era={era}", "wait 100"


def test_a_controller_does_not_start_on_a_log_with_a_level_that_its_release_lacks() -> None:
    assert runs(begun(*controller_restarted("kafka-4.2")))
    assert not runs(begun(*controller_restarted("kafka-3.9")))
    assert not runs(begun(*controller_restarted("kafka-4.2,elr=off")))
    simulation = begun("kill 100")
    outcome = perform(simulation.cluster, parse_action("start 100 era=kafka-3.9", names()))
    assert "eligible.leader.replicas.version 1, and this controller's release knows none above 0" in str(outcome)


def test_a_controller_starts_once_the_levels_that_it_lacks_are_gone() -> None:
    without_elr = (downgrade("eligible.leader.replicas.version", "0"), "wait 100")
    assert not runs(begun(*without_elr, *controller_restarted("kafka-3.9")))
    lowered = (*without_elr, downgrade("metadata.version", "3.9-IV0"), "wait 100")
    assert runs(begun(*lowered, *controller_restarted("kafka-3.9")))


def test_a_controller_of_a_release_without_elr_ignores_what_a_downgrade_has_left() -> None:
    simulation = begun("stop 2", "wait 12000", "stop 1", "wait 12000")
    (state,) = simulation.cluster.image.partitions.values()
    assert ONE in state.elr
    lowered = (downgrade("eligible.leader.replicas.version", "0"), downgrade("metadata.version", "3.9-IV0"))
    for line in (
        *lowered,
        *("wait 100", *controller_restarted("kafka-3.9")),
        *("kill 0", "wait 12000", "start 1 era=kafka-3.9", "wait 12000"),
    ):
        perform(simulation.cluster, parse_action(line, names()))
    (state,) = simulation.cluster.image.partitions.values()
    assert state.leader is None


def refusals(*lines: str) -> list[events.RegistrationRefused]:
    journal = Journal()
    begun(*lines, journal=journal)
    return [each.event for each in journal.entries if isinstance(each.event, events.RegistrationRefused)]


def test_a_refused_registration_is_on_record_once_with_its_reason() -> None:
    by_broker, by_controller = sorted(refusals(*restarted("kafka-3.9")), key=lambda event: event.reason)
    assert (by_broker.broker_id, by_broker.error, by_broker.reason) == (1, "UNSUPPORTED_VERSION", "")
    assert by_controller.reason == (
        "the broker does not support the finalized version 4.2-IV1 of metadata.version; "
        "the broker wants a version between 3.0-IV1 and 3.9-IV0"
    )
    assert refusals("kill 1", "start 1", "wait 4000") == []  # its last session has to end first


def followers_fetches(simulation: Simulation) -> set[bool]:
    """Returns whether fetches of broker 1 named its epoch, as broker 0 remembers them."""
    partition = leader(simulation).partition(TopicPartition("orders", 0))
    assert partition is not None
    return {partition.isr_member(ONE).broker_epoch is not None}


def leader(simulation: Simulation) -> HostingBroker:
    broker = simulation.cluster.nodes[BrokerId(NodeId(0))].broker
    assert broker is not None
    return broker


def test_a_follower_from_before_kip_903_names_no_broker_epoch() -> None:
    assert followers_fetches(begun(*restarted("kip-966"))) == {True}
    assert followers_fetches(begun(*restarted("kip-966,ap_broker_epoch_check=off"))) == {False}


def test_a_leader_from_before_kip_903_is_answered_as_one() -> None:
    simulation = begun("stop 0", "wait 3000", "start 0 era=kip-966,ap_broker_epoch_check=off", "wait 8000")
    for line in (
        "elect_leaders: {type: preferred, partition: orders-0}",
        "kill 2",
        "wait 12000",
        "start 2",
        "wait 8000",
    ):
        perform(simulation.cluster, parse_action(line, names()))
    (state,) = simulation.cluster.image.partitions.values()
    assert (state.leader, set(state.isr)) == (0, {0, 1, 2})


def test_a_leader_whose_release_does_not_recover_ignores_recovering() -> None:
    offline = ("kill 1", "kill 2", "wait 12000", "power-loss 0 keep=none")
    unclean = "elect_leaders: {type: unclean, partition: orders-0}"
    states = []
    for era in ("kip-966", "kip-966,recovering_gate=off"):
        simulation = begun(*offline, "wait 12000", f"start 0 era={era}", "wait 100", unclean, "wait 100")
        partition = leader(simulation).partition(TopicPartition("orders", 0))
        assert partition is not None
        states.append(
            (simulation.cluster.image.partitions[TopicPartition("orders", 0)].leader, partition.is_recovering)
        )
    assert states == [(0, True), (0, False)]


def test_a_controller_of_several_follows_the_rules_of_its_own_era() -> None:
    simulation = Simulation(parse_plan(PLAN.format(era="kip-966 controllers=3")))
    simulation.begin()
    for line in ("kill 101", "start 101 era=kip-966,pre_vote=off"):
        perform(simulation.cluster, parse_action(line, names()))
    controllers = simulation.cluster.metadata_nodes
    followed = [
        node.process.quorum.replica.rules.pre_vote
        for node in controllers.values()
        if isinstance(node, QuorumControllerNode) and node.process is not None
    ]
    assert followed == [True, False, True]


def test_a_controller_of_several_ends_where_a_level_is_committed_that_its_release_lacks() -> None:
    simulation = Simulation(parse_plan(PLAN.format(era="kip-966 controllers=3")))
    simulation.begin()
    for line in ("kill 101", "start 101 era=kafka-3.9", "wait 4000"):
        perform(simulation.cluster, parse_action(line, names()))
    nodes = simulation.cluster.metadata_nodes
    assert [node.core is not None for _, node in sorted(nodes.items())] == [True, False, True]
