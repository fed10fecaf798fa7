"""Every action has an executor, which says whether it took effect, whether it affected anybody, and what was seen."""

import pytest

from laststand.emulator.core import events
from laststand.emulator.core.disk import ExactLoss, Keep, NamesFate, TruncationFate
from laststand.emulator.core.types import BrokerId, MessageFate, NodeId, TopicPartition
from laststand.emulator.plan import actions
from laststand.emulator.plan.lines import parse_action
from laststand.emulator.plan.nodes import CONTROLLER
from laststand.emulator.plan.plan import parse_plan
from laststand.emulator.plan.power import DiskLoss
from laststand.emulator.simulator.actions.performer import perform, perform_and_record
from laststand.emulator.simulator.disk.power_loss import exact_loss
from laststand.emulator.simulator.run.journal import Journal
from laststand.emulator.simulator.run.simulation import Simulation
from tests.unit.plan.test_lines import names

PLAN = """\
cluster brokers=4
topic orders replicas=(0,1,2) min.insync.replicas=2
topic refunds replicas=(1,2,3)
"""
NAME = TopicPartition("orders", 0)


def begun(journal: Journal | None = None) -> Simulation:
    simulation = Simulation(parse_plan(PLAN), journal=journal)
    simulation.begin()
    return simulation


def done(simulation: Simulation, *lines: str) -> list[tuple[bool, bool, str]]:
    """Returns the outcome of each line."""
    outcomes = [perform(simulation.cluster, parse_action(line, names())) for line in lines]
    return [(outcome.took_effect, outcome.affected, outcome.seen) for outcome in outcomes]


@pytest.mark.parametrize("row", actions.ACTION_SPECS.values(), ids=lambda row: row.kind.__name__)
def test_every_action_is_performed_and_the_cluster_recovers(row: object) -> None:
    spec = next(each for each in actions.ACTION_SPECS.values() if each is row)
    simulation = begun()
    if spec.kind is actions.UnregisterBroker:  # one that runs is never registered again
        done(simulation, "stop 2", "wait 200")
    outcome = perform_and_record(simulation.cluster, parse_action(spec.example, names()))
    assert outcome.took_effect is not outcome.seen.startswith("no-op: ")
    simulation.cluster.run(200)
    simulation.finish()
    assert simulation.findings() == ()


@pytest.mark.parametrize(
    ("lines", "outcomes"),
    [
        (("kill 1", "kill 1"), [(True, True, "the process was killed"), (False, False, "no-op: it does not run")]),
        (("kill 7",), [(False, False, "no-op: there is no such node")]),
        (("kill 0,1",), [(True, True, "0: the process was killed; 1: the process was killed")]),
        (("kill 100", "start 100"), [(True, True, "the process was killed"), (True, True, "incarnation 1 runs")]),
        (("start 100",), [(False, False, "no-op: it runs")]),
        (
            ("kill 1", "start 1 inter.broker.protocol.version=2.7"),
            [
                (True, True, "the process was killed"),
                (False, False, "no-op: it is no broker of a cluster with ZooKeeper"),
            ],
        ),
        (("pause 1", "stop 1"), [(True, True, "it stands still"), (False, False, "no-op: it is paused")]),
        (("pause 100", "resume 100"), [(True, True, "it stands still"), (True, True, "it runs")]),
        (
            ("clock 1 rate=500000", "clock 1 rate=500000"),
            [(True, True, "its clock runs at 500000 ppm"), (False, False, "no-op: it runs so already")],
        ),
        (("stop 100",), [(True, True, "the process was asked to stop")]),
        (("replace-disk 1",), [(True, True, "the disk is empty")]),
        (("cut 0->1", "cut 0->1"), [(True, True, "1 of 1 links silent"), (False, False, "no-op: it is cut")]),
        (
            ("half-open 0->1", "half-open 0->1", "cut 0->1", "mend 0->1"),
            [
                (True, True, "1 of 1 links silent"),
                (False, False, "no-op: it is half open"),
                (True, False, "no effect was seen: nothing passed there before"),
                (True, True, "1 link restored"),
            ],
        ),
        (
            ("flap 0->1 down=200 up=200 times=2", "cut 0->1", "flap 0->1 down=200 up=200 times=2"),
            [
                (True, True, "cut 2 times"),
                (True, True, "1 of 1 links silent"),
                (False, False, "no-op: nothing passed there before"),
            ],
        ),
        (("cut 0->9",), [(False, False, "no-op: there is no such link")]),
        (
            ("kill 1", "cut 0->1"),
            [(True, True, "the process was killed"), (True, False, "no effect was seen: nothing passed there before")],
        ),
        (
            ("pause 1", "cut 0->1"),
            [(True, True, "it stands still"), (True, False, "no effect was seen: nothing passed there before")],
        ),
        (
            ("cut 0->1", "lose-responses 0->1"),
            [(True, True, "1 of 1 links silent"), (True, False, "no effect was seen: nothing passed there before")],
        ),
        (("isolate 1", "heal"), [(True, True, "8 of 8 links silent"), (True, True, "8 links restored")]),
        (
            ("isolate 1 clients=cut", "rejoin 1"),
            [(True, True, "9 of 9 links silent"), (True, True, "9 links restored")],
        ),
        (
            ("isolate 100 clients=cut", "rejoin 100"),
            [(True, True, "9 of 9 links silent"), (True, True, "9 links restored")],
        ),
        (("rejoin 1",), [(True, False, "0 links restored")]),
        (("heal",), [(False, False, "no-op: nothing is wrong with the network")]),
        (("cut 0->1", "mend 0->1"), [(True, True, "1 of 1 links silent"), (True, True, "1 link restored")]),
        (("release 0->1 Fetch request",), [(False, False, "no-op: they are not held")]),
        (
            ("delay 1->0 Fetch request ms=5", "delay 1->0 Fetch request ms=5", "release 1->0 Fetch request"),
            [(True, True, "from now on"), (False, False, "no-op: that is done to them"), (True, True, "0 released")],
        ),
        (
            ("hold 1->100 BrokerHeartbeat request", "wait 150", "lose-next 1->100 BrokerHeartbeat response count=1"),
            [(True, True, "held from now on"), (True, True, "150 ms have passed"), (True, True, "from now on")],
        ),
        (("delete_records: {partition: orders-0, offset: 5}",), [(True, True, "asked leader 0")]),
        (("recreate returns",), [(False, False, "no-op: there is no topic returns")]),
        (("elr-feature level=1",), [(False, False, "no-op: eligible.leader.replicas.version is at level 1")]),
    ],
)
def test_the_sentence_about_an_outcome(lines: tuple[str, ...], outcomes: list[tuple[bool, bool, str]]) -> None:
    assert done(begun(), *lines) == outcomes


def test_records_are_not_deleted_without_a_leader() -> None:
    simulation = begun()
    *_, deleted = done(simulation, "kill 0,1,2", "wait 2000", "delete_records: {partition: orders-0, offset: 5}")
    assert deleted == (False, False, "no-op: nobody leads orders-0")


def test_a_stopped_controller_is_started_again() -> None:
    simulation = begun()
    done(simulation, "stop 100", "wait 100")
    assert simulation.cluster.controller_node.core is None
    simulation.finish()
    assert simulation.findings() == ()


def test_a_broker_that_is_cut_off_from_everybody_serves_no_clients() -> None:
    served, isolated = begun(), begun()
    done(served, "isolate 0", "produce orders-0 acks=1 records=1", "wait 50")
    done(isolated, "isolate 0 clients=cut", "produce orders-0 acks=1 records=1", "wait 50")
    assert len(served.cluster.stored(BrokerId(NodeId(0)), NAME)) == 1
    assert len(isolated.cluster.stored(BrokerId(NodeId(0)), NAME)) == 0


def test_only_what_took_effect_is_recorded() -> None:
    journal = Journal()
    simulation = begun(journal)
    for line in ("kill 1", "kill 1", "kill 1,2"):
        perform_and_record(simulation.cluster, parse_action(line))
    told = [entry.event.target for entry in journal.entries if isinstance(entry.event, events.FaultInjected)]
    assert told == ["1", "1", "2"]


def test_messages_are_lost_duplicated_and_delayed_as_counted() -> None:
    journal = Journal()
    simulation = begun(journal)
    done(simulation, "lose-next 1->100 BrokerHeartbeat response count=2", "wait 1500")
    done(simulation, "duplicate-next 1->100 BrokerHeartbeat request count=1", "wait 1500")
    done(simulation, "delay 1->100 BrokerHeartbeat request ms=20", "wait 1500", "heal")
    counted = len([entry for entry in journal.entries if isinstance(entry.event, events.MessageIntercepted)])
    done(simulation, "wait 1500")
    touched = [entry.event for entry in journal.entries if isinstance(entry.event, events.MessageIntercepted)]
    assert len(touched) == counted == simulation.cluster.network.intercepted.total(), "none after the heal"
    fates = [event.fate for event in touched]
    assert (fates.count(MessageFate.LOST), fates.count(MessageFate.DUPLICATED)) == (2, 1)
    assert fates.count(MessageFate.DELAYED) > 3
    simulation.finish()
    assert simulation.findings() == ()


# --- DiskLoss of power ------------------------------------------------------------------------------------------------


def with_unsynced(count: int) -> Simulation:
    simulation = begun()
    for _ in range(count):
        done(simulation, "produce orders-0 acks=all records=1", "wait 20")
    return simulation


def lose(node_id: int, loss: DiskLoss) -> actions.Action:
    return actions.PowerLoss(nodes=(NodeId(node_id),), loss=loss)


def test_what_is_drawn_depends_on_the_seed_and_the_broker_alone() -> None:
    disk = with_unsynced(5).cluster.nodes[BrokerId(NodeId(0))].disk
    losses = [DiskLoss(keep=Keep.PREFIX, seed=seed) for seed in range(20)]
    drawn = [exact_loss(loss, NodeId(0), disk) for loss in losses]
    assert drawn == [exact_loss(loss, NodeId(0), disk) for loss in losses]
    assert drawn != [exact_loss(loss, NodeId(1), disk) for loss in losses]
    assert {loss.kept for loss in drawn} == set(range(5))
    assert {loss.truncation for loss in drawn} == set(TruncationFate)


def test_exact_values_are_not_drawn() -> None:
    simulation = with_unsynced(5)
    exact = ExactLoss(kept=2, truncation=TruncationFate.KEPT, names=NamesFate.KEPT)
    outcome = perform(simulation.cluster, lose(0, DiskLoss(keep=Keep.PREFIX, seed=1, exact=exact)))
    assert outcome.seen == "1 process killed, 3 unsynced batches lost"
    assert len(simulation.cluster.stored(BrokerId(NodeId(0)), NAME)) == 2


def test_a_power_loss_also_hits_a_stopped_node_with_unsynced_data() -> None:
    simulation = with_unsynced(3)
    done(simulation, "kill 0")
    nothing = DiskLoss(keep=Keep.NONE, seed=1)
    assert perform(simulation.cluster, lose(0, nothing)).seen == "0 processes killed, 3 unsynced batches lost"
    again = perform(simulation.cluster, lose(0, nothing))
    assert (again.took_effect, again.affected) == (True, False)


def test_a_controller_that_is_down_loses_what_it_had_not_synced() -> None:
    simulation = begun()
    done(simulation, "hold 100->100 Sync response", "min-isr orders value=1", "wait 5", "kill 100")
    nothing = DiskLoss(keep=Keep.NONE, seed=1)
    lost = perform(simulation.cluster, lose(CONTROLLER, nothing))
    assert lost.affected
    assert lost.seen.startswith("0 processes killed, ")
    assert not perform(simulation.cluster, lose(CONTROLLER, nothing)).took_effect


# --- Requests -----------------------------------------------------------------------------------------------------


def test_a_recreated_topic_has_its_replicas_and_configuration_and_another_id() -> None:
    simulation = begun()
    before = simulation.cluster.image.partitions[NAME]
    done(simulation, "recreate orders", "wait 50")
    after = simulation.cluster.image.partitions[NAME]
    assert after.replicas == before.replicas
    assert after.topic_id != before.topic_id


def test_requests_reach_the_controller() -> None:
    simulation = begun()
    done(simulation, "create_topic: {name: returns, replicas: [[1, 2]]}", "delete_topic: {name: refunds}", "wait 50")
    assert {"returns", "orders"} == set(simulation.cluster.image.topics)


def test_a_node_whose_certificate_expired_is_refused_where_it_dials_until_it_has_another() -> None:
    simulation = Simulation(parse_plan(PLAN.replace("brokers=4", "brokers=4 security.inter.broker.protocol=SSL")))
    simulation.begin()
    cluster = simulation.cluster
    assert done(simulation, "expire-certificate 0", "expire-certificate 0") == [
        (True, True, "whoever it dials refuses it"),
        (False, False, "no-op: it has expired already"),
    ]
    cluster.run(4 * cluster.properties.broker_session_timeout_ms)
    state, broker = cluster.state(NAME), cluster.nodes[BrokerId(NodeId(0))].broker
    assert state is not None
    assert (state.leader, cluster.image.brokers[BrokerId(NodeId(0))].fenced) == (1, True)
    assert broker is not None
    assert broker.image.partitions[NAME].leader == 0, "it does not hear of that"
    assert done(simulation, "renew-certificate 0") == [(True, True, "new connections show another certificate")]
    cluster.run(cluster.properties.broker_session_timeout_ms)
    assert broker.image.partitions[NAME].leader_epoch > state.leader_epoch - 1, "it has heard of the election"
    simulation.finish()
    assert simulation.findings() == ()
