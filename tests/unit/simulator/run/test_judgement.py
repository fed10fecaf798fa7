"""The verdict on a simulated run says what verification can see in what the run leaves."""

import pytest

from laststand.emulator.core.promises import PROMISES
from laststand.emulator.core.records import TopicRecord
from laststand.emulator.core.types import TopicPartition
from laststand.emulator.plan.plan import parse_plan
from laststand.emulator.simulator.oracle.finding import Alarm, Guarantee
from laststand.emulator.simulator.run.judgement import Judgement, RunVerdict, judge
from laststand.emulator.simulator.run.simulation import Simulation

ORDERS, REFUNDS = TopicPartition("orders", 0), TopicPartition("refunds", 0)


def alarm(check_id: str, *, partition: TopicPartition = ORDERS, leaves_evidence: bool = True) -> Alarm:
    return Alarm(
        check_id=check_id,
        kind=PROMISES[check_id].kind,
        partition=partition,
        guarantee=Guarantee.HOLDS,
        sentence="",
        step=1,
        leaves_evidence=leaves_evidence,
    )


def judged(*alarms: Alarm, acks: int = 1) -> Judgement:
    return judge(alarms, (), is_promised=lambda _: True, unread=(), acks=acks)


@pytest.mark.parametrize(
    ("alarms", "violated"),
    [
        ((), ()),
        ((alarm("D15"),), ("D15",)),
        ((alarm("D15", leaves_evidence=False),), ()),
        ((alarm("D6"),), ()),
        ((alarm("D6"), alarm("L6")), ("D6",)),
        ((alarm("D6"), alarm("L6", partition=REFUNDS)), ()),
    ],
    ids=["nothing", "seen afterwards", "seen by who watched", "repaired", "left behind", "left behind elsewhere"],
)
def test_only_violations_that_left_evidence_count(alarms: tuple[Alarm, ...], violated: tuple[str, ...]) -> None:
    judgement = judged(*alarms)
    assert judgement.violated == violated
    assert judgement.verdict is (RunVerdict.VIOLATION if violated else RunVerdict.VALID)


def test_a_run_in_which_nothing_was_acknowledged_proves_nothing() -> None:
    judgement = judged(acks=0)
    assert judgement.verdict is RunVerdict.UNKNOWN
    assert judgement.doubts == ("no record was acknowledged",)


@pytest.mark.parametrize("check_id", ["InvariantError", "Exception"])
def test_a_run_in_which_a_process_ended_by_itself_proves_nothing(check_id: str) -> None:
    judgement = judged(alarm(check_id))
    assert judgement.verdict is RunVerdict.UNKNOWN
    assert judgement.doubts == (f"a process ended by itself: {check_id} at step 1: ",)


def test_topics_that_are_recreated_at_one_moment_have_ids_of_their_own() -> None:
    recreated = "recreate orders\n" * 3
    plan = parse_plan(f"cluster brokers=2\ntopic orders replicas=(0,1)\n{recreated}")
    simulation = Simulation(plan)
    simulation.play_plan()
    simulation.finish()
    records = [record for batch in simulation.cluster.controller_node.log for record in batch.records]
    ids = [record.topic_id for record in records if isinstance(record, TopicRecord)]
    assert len(ids) == len(set(ids)) == 4
