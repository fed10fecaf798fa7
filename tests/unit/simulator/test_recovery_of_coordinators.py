"""Coordinators whose logs were elected uncleanly, what they forgot, and what becomes of it (KIP-704)."""

from pathlib import Path
from typing import Final

import msgspec
import pytest

from laststand.emulator.core import events
from laststand.emulator.core.batch import BatchDescriptor, TransactionResult
from laststand.emulator.core.client.steps import GroupReadRecorded, SessionRecorded, TransactionRecorded
from laststand.emulator.core.history import OperationType
from laststand.emulator.core.topic_names import TRANSACTIONS_TOPIC
from laststand.emulator.core.types import BrokerId, NodeId, TopicPartition
from laststand.emulator.plan.plan import parse_plan
from laststand.emulator.simulator.run.journal import Journal
from laststand.emulator.simulator.run.simulation import Simulation

REGRESSIONS: Final = Path(__file__).parents[2] / "simulation" / "regressions"
ORDERS: Final = TopicPartition("orders", 0)

LOST: Final = """\
cluster brokers=4 {switches}
topic orders replicas=(3) min.insync.replicas=1
topic __transaction_state replicas=(2,0,1) min.insync.replicas=2 unclean.leader.election.enable=true
transact orders-0 records=1
wait 300
hold client->2 EndTxn request
transact orders-0 records=1
wait 100
cut 1->2
expire 1
replace-disk 2
replace-disk 0
heal
rejoin 1
cut 2->1
cut 0->1
{told}
start 2
start 0
wait 1000
{kills}
wait 1000
heal
start 1
wait 3000
"""
"""Broker 1, which is behind and not in the ISR, is elected, and fails in the midst of its recovery."""


@pytest.mark.parametrize(
    ("told", "failing", "recoveries"),
    [
        pytest.param(
            "hold 1->controller AlterPartition request",
            "kill 1\nkill 2\nkill 0\nwait 100\nheal\nstart 1\nwait 1000\nstart 2\nstart 0",
            2,
            id="RECOVERED is not told",
        ),
        pytest.param("rejoin 1\nhold 1->3 WriteTxnMarkers request", "kill 1", 1, id="markers are not written"),
    ],
)
def test_a_coordinator_that_fails_in_the_midst_of_its_recovery_begins_again_and_ends(
    told: str, failing: str, recoveries: int
) -> None:
    simulation, journal = played(LOST.format(switches="", told=told, kills=failing))
    started = [entry for entry in journal.entries if isinstance(entry.event, events.RecoveryStarted)]
    assert len(started) == recoveries
    assert last_end(simulation) is TransactionResult.ABORT
    decisions = simulation.cluster.nodes[BrokerId(NodeId(1))].disk.logs[TopicPartition(TRANSACTIONS_TOPIC, 0)].batches
    assert [batch.leader_epoch for batch in decisions][:6] == [0, 0, 0, 0, 0, 1], "the recovery decided, in its epoch"
    assert simulation.findings() == ()


def test_without_a_recovery_the_producer_goes_on_and_commits_what_may_have_been_decided_before() -> None:
    simulation, _ = played(LOST.format(switches="txn_recovery=off", told="rejoin 1", kills="kill 1"))
    assert last_end(simulation) is TransactionResult.COMMIT


@pytest.mark.parametrize("name", ["t10-a-transactional-id-is-lost", "t12-a-partition-of-a-transaction-is-lost"])
@pytest.mark.parametrize(("scan", "found"), [("on", set()), ("off", {"X5"})])
def test_a_transaction_that_its_coordinator_forgot_is_ended_by_the_leader_that_asks(
    name: str, scan: str, found: set[str]
) -> None:
    simulation, _ = story(name, ("txn_recovery_scan", scan))
    assert {alarm.check_id for alarm in simulation.outcome().alarms if alarm.check_id[0] == "X"} == found


BEGINNING_LOST: Final = "t12-the-beginning-of-a-transaction-is-lost"


@pytest.mark.parametrize(("recovery", "found"), [("bump_all", set()), ("abort_ongoing", {"X1", "X2", "X3"})])
def test_a_producer_whose_transaction_was_forgotten_goes_on_unless_its_id_is_taken_away(
    recovery: str, found: set[str]
) -> None:
    simulation, journal = story(BEGINNING_LOST, ("txn_recovery", recovery))
    assert {alarm.check_id for alarm in simulation.outcome().alarms if alarm.check_id[0] == "X"} == found
    sessions = [entry.record for entry in journal.history if isinstance(entry.record, SessionRecorded)]
    last = [entry.record for entry in journal.history if isinstance(entry.record, TransactionRecorded)][-1]
    if recovery == "bump_all":
        assert last.error == "INVALID_PRODUCER_ID_MAPPING"
        before, after = sessions
        assert (after.producer_epoch, after.producer_id == before.producer_id) == (0, False), "a session of its own"
    else:
        assert (last.type, len(sessions)) == (OperationType.OK, 1)


@pytest.mark.parametrize(("recovery", "found"), [("bump_all", set()), ("abort_ongoing", {"X6"}), ("off", {"X6"})])
def test_a_producer_that_was_fenced_is_current_again_unless_its_id_is_taken_away(
    recovery: str, found: set[str]
) -> None:
    simulation, _ = story("t11-a-fenced-producer-is-current-again", ("txn_recovery", recovery))
    assert {alarm.check_id for alarm in simulation.outcome().alarms if alarm.check_id[0] == "X"} == found


def test_a_late_request_for_an_epoch_aborts_the_transaction_of_a_successor() -> None:
    _, journal = story("t33-a-fenced-producer-stops-its-successor", ("epoch_per_transaction", "off"))
    last = [entry.record for entry in journal.history if isinstance(entry.record, TransactionRecorded)][-1]
    assert (last.operation_id, last.error) == ("transactional-1:transaction:0", "PRODUCER_FENCED")


def test_a_producer_that_asks_the_next_coordinator_again_for_an_epoch_is_fenced() -> None:
    _, journal = story("t18-a-healthy-producer-is-fenced", ("epoch_per_transaction", "off"))
    sessions = [entry.record for entry in journal.history if isinstance(entry.record, SessionRecorded)]
    assert [session.producer_epoch for session in sessions] == [0, 2], "epoch 1 was given to nobody"


def test_an_id_that_was_taken_away_stays_so_when_another_coordinator_loads_it() -> None:
    plan = (REGRESSIONS / f"{BEGINNING_LOST}.txt").read_text(encoding="utf-8")
    plan = plan.replace("era=kip-966", "era=kip-966 txn_recovery=bump_all")
    failover = "rejoin 1\nwait 700\nkill 1\nwait 100\nstart 1\nwait 1500\nrelease"
    simulation, journal = played(plan.replace("rejoin 1\nwait 700\nrelease", failover))
    loaded = [entry for entry in journal.entries if isinstance(entry.event, events.PartitionChanged)]
    assert loaded, "the coordinator was elected"
    last = [entry.record for entry in journal.history if isinstance(entry.record, TransactionRecorded)][-1]
    assert (last.type, last.error) == (OperationType.FAIL, "INVALID_PRODUCER_ID_MAPPING")
    assert {alarm.check_id for alarm in simulation.outcome().alarms if alarm.check_id[0] == "X"} == set()


def story(name: str, *switches: tuple[str, str]) -> tuple[Simulation, Journal]:
    plan = parse_plan((REGRESSIONS / f"{name}.txt").read_text(encoding="utf-8"))
    journal = Journal()
    simulation = Simulation(msgspec.structs.replace(plan, era="kip-966", switches=switches), journal=journal)
    simulation.play_plan()
    return simulation, journal


def played(text: str) -> tuple[Simulation, Journal]:
    journal = Journal()
    simulation = Simulation(parse_plan(text), journal=journal)
    simulation.play_plan()
    return simulation, journal


def last_end(simulation: Simulation) -> TransactionResult:
    log: list[BatchDescriptor] = simulation.cluster.nodes[BrokerId(NodeId(3))].disk.logs[ORDERS].batches
    *_, last = [batch.marker for batch in log if batch.marker is not None]
    return last.result


OTHER_RECORDS: Final = """\
cluster brokers=3 offset_beyond_end={treatment}
topic orders replicas=(2) min.insync.replicas=1
topic __transaction_state replicas=(0,1) min.insync.replicas=1
topic __consumer_offsets replicas=(0,1) min.insync.replicas=2
produce orders-0 acks=all records=3
wait 300
consume orders-0 group=readers records=3
wait 300
replace-disk 2
wait 300
start 2
wait 3000
produce orders-0 acks=all records=5
wait 300
consume orders-0 group=readers records=2
wait 300
"""


@pytest.mark.parametrize(("treatment", "position"), [("clamp", 0), ("serve", 3)])
def test_a_group_goes_on_where_the_log_that_it_had_read_ends(treatment: str, position: int) -> None:
    _, journal = played(OTHER_RECORDS.format(treatment=treatment))
    reads = [entry.record for entry in journal.history if isinstance(entry.record, GroupReadRecorded)]
    assert [read.position for read in reads][:2] == [0, position], "the oracle reads on in the end"
