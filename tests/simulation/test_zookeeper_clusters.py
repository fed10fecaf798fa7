"""ZooKeeper clusters in the simulator: every era serves, survives what it promises to, and is judged."""

import pytest

from laststand.emulator.core import events
from laststand.emulator.core.types import TopicPartition
from laststand.emulator.core.zookeeper.rules import ZOOKEEPER_ERAS
from laststand.emulator.plan import actions
from laststand.emulator.plan.fields import PRODUCER_ALL, PRODUCER_LEADER
from laststand.emulator.plan.plan import parse_plan
from laststand.emulator.simulator.run.journal import Journal
from laststand.emulator.simulator.run.simulation import Simulation
from laststand.emulator.simulator.run.writer import play_and_stop
from laststand.emulator.simulator.search.explorer import SweepOptions, explore
from tests.simulation.zookeeper_soak import explained

ERAS = tuple(ZOOKEEPER_ERAS)
_SCHEDULES = 3

_LEADER_DIES = """
cluster brokers=3 era={era}
topic orders replicas=(0,1,2) min.insync.replicas=2
produce orders-0 acks=all records=1
wait 100
kill 0
wait 1000
produce orders-0 acks=all records=2
wait 300
start 0
wait 500
produce orders-0 acks=all records=1
"""

_LAST_REPLICA = """
cluster brokers=3 era={era}
topic orders replicas=(0,1,2) min.insync.replicas=2
produce orders-0 acks=all records=5
wait 200
stop 0
wait 800
stop 1
wait 800
power-loss 2 keep=none kept=0 truncation=kept
wait 800
start 2
wait 800
"""

_UNCLEAN_LATER = """
cluster brokers=4 era={era} leader.imbalance.check.interval.seconds=3600
topic orders replicas=(1,2) min.insync.replicas=1
produce orders-0 acks=all records=1
wait 200
stop 2
wait 1000
produce orders-0 acks=all records=1
wait 200
kill 1
wait 1000
start 2
wait 1000
alter_config: {{topic: orders, set: {{unclean.leader.election.enable: "true"}}}}
wait 200
"""


def played(text: str, era: str) -> Simulation:
    return play_and_stop(parse_plan(text.format(era=era)))


@pytest.mark.parametrize("era", ERAS)
def test_what_was_acknowledged_survives_the_leader(era: str) -> None:
    simulation = played(_LEADER_DIES, era)
    assert str(simulation.judgement()) == "valid, 0 acks=all records lost"
    assert simulation.outcome().acks == 4  # the last one once everything was healed
    assert not simulation.findings()


@pytest.mark.parametrize("era", ERAS)
def test_the_last_replica_standing_leads_with_whatever_it_holds(era: str) -> None:
    """KIP-966, Motivation: the guarantee holds, as one replica lost power; each of these eras loses (S13, Z17)."""
    judgement = played(_LAST_REPLICA, era).judgement()
    assert str(judgement) == "violation, guarantee broken, 5 acks=all records lost"


@pytest.mark.parametrize("era", ERAS)
def test_a_topic_that_comes_to_allow_unclean_elections_is_led_at_once(era: str) -> None:
    """Whichever process is the controller, and although it hosts no replica of the topic."""
    simulation = Simulation(plan := parse_plan(_UNCLEAN_LATER.format(era=era)))
    simulation.begin()
    for action in plan.actions:
        simulation.play(action)
    state = simulation.cluster.state(TopicPartition("orders", 0))
    assert state is not None
    assert state.leader == 2


@pytest.mark.parametrize("era", ERAS)
def test_a_seed_decides_everything(era: str) -> None:
    journals = [Journal(), Journal()]
    for journal in journals:
        explore(7, SweepOptions(era=era, profiles=("zk-sessions",)), journal=journal)
    assert journals[0].entries == journals[1].entries


@pytest.mark.parametrize("era", ERAS)
def test_without_power_losses_nothing_is_found(era: str) -> None:
    options = SweepOptions(era=era, profiles=("zk-sessions", "zk-restarts"))
    for seed in range(_SCHEDULES):
        assert explore(seed, options).outcome.findings == ()


_OWN_WRITE = """
cluster brokers=4 era={era} leader.imbalance.check.interval.seconds=3600
topic orders replicas=(1,2) min.insync.replicas=1
produce orders-0 acks=all records=1
expire-session 1
wait 1000
cut 1->2
produce orders-0 acks=1 records=1
wait 1000
lose-responses 2->100
mend 1->2
wait 150
produce orders-0 acks=1 records=1
cut 0->2
cut 3->2
cut 1->2
elect_leaders: {{type: preferred, partition: orders-0}}
wait 30
mend 2->100
wait 1000
produce orders-0 acks=all records=1
wait 1000
"""


@pytest.mark.parametrize("era", ERAS)
def test_the_answer_to_a_leaders_own_write_is_lost(era: str) -> None:
    """Z05: what the maximal ISR of KIP-497 is for."""
    writes_itself = era in ("kafka-2.5-zk", "kafka-2.6-zk")
    simulation = played(_OWN_WRITE, era)
    assert simulation.judgement().lost_records == (1 if writes_itself else 0)
    assert any(alarm.check_id == "D1" for alarm in simulation.findings()) is writes_itself


@pytest.mark.parametrize(("api", "violated"), [("SetData", True), ("Execute", True), ("Multi", False)])
def test_what_is_asked_of_zookeeper_is_known_by_its_name(api: str, violated: bool) -> None:  # noqa: FBT001 - a column of the table
    """As above, by the loss of one answer; a leader that is no controller asks for no transaction."""
    lose_one = f"lose: {{{{responses: {api}, from: 2, to: zookeeper, count: 1}}}}"
    plan = _OWN_WRITE.replace("lose-responses 2->100", lose_one).replace("mend 2->100", "wait 8000")
    simulation = played(plan.replace("wait 150", "wait 60"), "kafka-2.6-zk")
    assert ("D2" in simulation.judgement().violated) is violated


def test_a_request_that_waited_for_its_leaders_write_keeps_its_cause() -> None:
    journal = Journal()
    play_and_stop(parse_plan(_OWN_WRITE.format(era="kafka-2.6-zk")), journal=journal)
    answered = [entry.event for entry in journal.entries if isinstance(entry.event, events.ProduceAnswered)]
    assert answered
    assert {event.cause_id.partition(":")[0] for event in answered} <= {PRODUCER_ALL, PRODUCER_LEADER}


_CANCELLED = """
cluster brokers=4 era={era}
topic orders replicas=(0,1,2) min.insync.replicas=2
reassign orders-0 replicas=1,0,3
produce orders-0 acks=all records=1
reassign orders-0 replicas=0,1,2
wait 25
produce orders-0 acks=all records=1
wait 8
reassign orders-0 replicas=3,1,2
wait 2
elect_leaders: {{type: preferred, partition: orders-0}}
wait 400
"""


@pytest.mark.parametrize("era", ERAS)
def test_a_replica_is_made_a_member_while_its_addition_is_cancelled(era: str) -> None:
    """Z27: only where the leader writes the ISR, past the controller."""
    writes_itself = era in ("kafka-2.5-zk", "kafka-2.6-zk")
    found = {alarm.check_id for alarm in played(_CANCELLED, era).findings()}
    assert ("D1" in found) is writes_itself


_CANCELLED_BEFORE_IT_IS_TOLD = """
cluster brokers=4 era={era}
topic orders replicas=(0,1,2);(1,2,3) min.insync.replicas=2
stop 3
reassign orders-1 replicas=0,3,1
reassign orders-1 replicas=none
produce orders-1 acks=all records=1
"""


_BACK_IN_THE_ISR = """
cluster brokers=4 era={era}
topic orders replicas=(0,1,2) min.insync.replicas=2
wait 29
lose-responses 0->100
cut 1->0
produce orders-0 acks=1 records=1
wait 1097
power-loss 2 keep=none kept=12 truncation=kept
wait 440
"""


_TOLD_OF_A_DELETED_TOPIC = """
cluster brokers=3 era={era}
topic orders replicas=(0,1,2) min.insync.replicas=2
cut 2->0
wait 450
rejoin 2
hold 0->2 LeaderAndIsr request
wait 61
duplicate 0->2 LeaderAndIsr request
recreate orders
wait 100
"""


@pytest.mark.parametrize(
    ("text", "era"),
    [
        pytest.param(_CANCELLED_BEFORE_IT_IS_TOLD, "kafka-2.6-zk", id="H1: told of no such replica"),
        pytest.param(_BACK_IN_THE_ISR, "kafka-3.9-zk", id="Z3: a member that lost power and never left"),
        pytest.param(_TOLD_OF_A_DELETED_TOPIC, "kip-550-zk", id="M15: a stray of a topic that is gone"),
    ],
)
def test_what_no_promise_covers_is_no_finding(text: str, era: str) -> None:
    found = {alarm.check_id for alarm in play_and_stop(parse_plan(text.format(era=era))).findings()}
    assert not found - {"D3"}


_REMOVED = """
cluster brokers=3 era={era}
topic orders replicas=(0,1) min.insync.replicas=2
produce orders-0 acks=all records=1
wait 100
cut 1->0
slow: {{from: 0, to: 100, latency: 25 ms}}
reassign orders-0 replicas=0
wait {wait}
produce orders-0 acks=all records=1
wait 5
kill 0
wait 2000
"""


@pytest.mark.parametrize("era", ERAS)
def test_a_leader_does_without_a_removed_replica_before_the_isr_does(era: str) -> None:
    """Z28: broker 0 is the controller, too, and dies between telling itself and writing the ISR."""
    wait_ms = 255 if era in ("kafka-2.5-zk", "kafka-2.6-zk") else 220  # there the controller sets a watch first
    simulation = play_and_stop(parse_plan(_REMOVED.format(era=era, wait=wait_ms)))
    assert str(simulation.judgement()) == "violation, guarantee broken, 1 acks=all records lost"
    assert "D3" not in {alarm.check_id for alarm in simulation.findings()}


_REPLACED_DISK = """
cluster brokers=4 era={era}
topic orders replicas=(2,3,1) min.insync.replicas=2
kill 3
wait 1000
produce orders-0 acks=all records=1
hold 2->0 AlterPartition request
start 3
wait 300
replace-disk 3
cut 3->2
wait 1000
start 3
wait 200
release 2->0 AlterPartition request
wait 50
kill 2
wait 1000
"""


@pytest.mark.parametrize("era", [era for era in ERAS if era not in ("kafka-2.5-zk", "kafka-2.6-zk")])
def test_a_replica_with_an_empty_disk_becomes_a_member_for_what_its_former_disk_held(era: str) -> None:
    """Z18: no ZooKeeper cluster knows which process of a broker caught up (KIP-903)."""
    simulation = play_and_stop(parse_plan(_REPLACED_DISK.format(era=era)))
    assert str(simulation.judgement()) == "violation, guarantee broken, 1 acks=all records lost"


_ZOMBIE = """
cluster brokers=4 era={era} controller_epoch_fence=off
topic orders replicas=(1,2,3) min.insync.replicas=2
hold 0->100 Execute request
reassign orders-0 replicas=1,2
wait 5
depose-controller
wait 50
release 0->100 Execute request
wait 800
"""


_LATE_STOP = """
cluster brokers=3 era={era}
topic orders replicas=(0,1,2) min.insync.replicas=1
hold 0->2 StopReplica request
reassign orders-0 replicas=0,1
wait 20
release 0->2 StopReplica request count=1
wait 1
duplicate 0->2 StopReplica request
reassign orders-0 replicas=2,0,1
produce orders-0 acks=all records=1
wait 20
"""


@pytest.mark.parametrize(
    ("text", "era", "failures"),
    [
        (_OWN_WRITE, "kafka-2.5-zk", ("Z05",)),
        (_LATE_STOP, "kafka-2.5-zk", ("Z11",)),
        (_LAST_REPLICA, "kafka-3.9-zk", ("Z17",)),
        (_CANCELLED, "kafka-2.6-zk", ("Z27",)),
        (_REPLACED_DISK, "kafka-3.9-zk", ("Z18",)),
        (_REMOVED.replace("{wait}", "220"), "kafka-3.9-zk", ("Z28",)),
    ],
    ids=("Z05", "Z11", "Z17", "Z27", "Z18", "Z28"),
)
def test_a_finding_is_explained_by_the_failure_without_which_it_is_not_found(
    text: str, era: str, failures: tuple[str, ...]
) -> None:
    plan = parse_plan(text.format(era=era))
    assert play_and_stop(plan).findings()
    assert explained(plan) == failures


_TOLD_LATE = """
cluster brokers=4 era={era}
topic orders replicas=(0,1,2);(1,2,3) min.insync.replicas=2
expire-session 1
wait 450
expire-session 0
wait 970
expire-session 2
wait 1152
lose-responses 3->100
expire-session 1
wait 5131
"""

_REMOVED_AND_ADDED = """
cluster brokers=3 era={era}
topic orders replicas=(0,1,2) min.insync.replicas=1
produce orders-0 acks=all records=1
produce orders-0 acks=all records=1
produce orders-0 acks=all records=1
produce orders-0 acks=all records=1
produce orders-0 acks=all records=1
cut 1->0
wait 14
cut 0->100
wait 426
rejoin 0
wait 20
reassign orders-0 replicas=0,1
wait 48
reassign orders-0 replicas=2,0,1
"""


@pytest.mark.parametrize(
    "text", [_TOLD_LATE, _REMOVED_AND_ADDED], ids=["a notification that is due", "a leader that forgot a replica"]
)
def test_what_looks_like_a_broken_promise_and_is_none(text: str) -> None:
    """Told of an ISR seconds after all else is quiet; told to do without a replica that was assigned again since."""
    assert not played(text, "kafka-2.5-zk").findings()


def test_a_rule_that_is_broken_is_explained_by_no_failure_that_loses_records() -> None:
    """A controller that was replaced and is not fenced (Z08) decides a reassignment, without which there is no Z28."""
    plan = parse_plan(_ZOMBIE.format(era="kafka-3.9-zk"))
    assert {finding.check_id for finding in play_and_stop(plan).findings()} == {"M14"}
    assert explained(plan) == ()


_STOPPED = """
cluster brokers=4 era=kafka-3.9-zk
topic orders replicas=(0,1,2) min.insync.replicas=2
stop 0
stop 2
reassign orders-0 replicas=0,2,3
"""


def test_what_a_controller_was_asked_that_stops_is_not_waited_for() -> None:
    assert not played(_STOPPED, "kafka-3.9-zk").findings()


_DEPOSED = """
cluster brokers=3 era={era}
topic orders replicas=(0,1,2) min.insync.replicas=2
produce orders-0 acks=all records=1
depose-controller
wait 200
produce orders-0 acks=all records=1
kill 1
wait 1000
produce orders-0 acks=all records=1
wait 300
"""


@pytest.mark.parametrize("era", ERAS)
def test_an_administrator_deposes_the_controller(era: str) -> None:
    simulation = played(_DEPOSED, era)
    assert simulation.skipped == []
    assert str(simulation.judgement()) == "valid, 0 acks=all records lost"
    assert not simulation.findings()


def test_there_is_nobody_to_depose_in_a_kraft_cluster() -> None:
    simulation = played(_DEPOSED, "kip-966")
    assert [simulation.plan.actions[index] for index in simulation.skipped] == [actions.DeposeController()]
