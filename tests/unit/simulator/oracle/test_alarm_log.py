"""The alarm_log: each alarm once, and whether the guarantee held by the ledger of the partition."""

import pytest

from laststand.emulator.core.types import NodeId, TopicPartition
from laststand.emulator.simulator.oracle.alarm_log import AlarmLog
from laststand.emulator.simulator.oracle.finding import Alarm, Guarantee
from laststand.emulator.simulator.oracle.guarantee import GuaranteeLedger
from laststand.emulator.simulator.oracle.truth import PartitionTruth

NAME = TopicPartition("orders", 0)


class Interrupted(GuaranteeLedger):
    """A ledger of a guarantee that did not hold at moment 5."""

    def held(self, since: int, until: int) -> bool:
        return not since <= 5 <= until


def alarm_log(heard: list[Alarm]) -> AlarmLog:
    made = AlarmLog(
        {NAME: PartitionTruth(Interrupted())},
        lambda: 7,
        heard.append,
        lambda check_id, node: check_id == "H2" and node == 1,
    )
    made.moment = 9
    return made


def test_the_same_alarm_rings_once() -> None:
    heard: list[Alarm] = []
    made = alarm_log(heard)
    for sentence in ("gone", "gone", "gone too"):
        made.report("D1", NAME, sentence)
    assert [alarm.sentence for alarm in heard] == ["gone", "gone too"]
    assert made.alarms == heard
    assert heard[0].step == 7


def test_an_alarm_says_whether_its_process_had_the_rule() -> None:
    made = alarm_log([])
    for check_id, node in (("H2", 1), ("H2", 2), ("H2", None), ("D1", 1)):
        made.report(check_id, NAME, f"by {node}", by=None if node is None else NodeId(node))
    assert [alarm.is_promised for alarm in made.alarms] == [True, False, False, False]


def test_what_a_check_finds_may_leave_no_evidence_from_some_moment_on() -> None:
    made = alarm_log([])
    made.report("M9", NAME, "before")
    made.hide("M9", "M14")
    made.report("M9", NAME, "after")
    made.report("M1", NAME, "of another check")
    assert [alarm.leaves_evidence for alarm in made.alarms] == [True, False, True]


@pytest.mark.parametrize(
    ("check_id", "partition", "since", "until", "guarantee"),
    [
        ("D1", NAME, 0, None, Guarantee.EXCEEDED),
        ("D1", NAME, 6, None, Guarantee.HOLDS),
        ("D1", NAME, 2, 4, Guarantee.HOLDS),
        ("D1", NAME, 8, 5, Guarantee.EXCEEDED),
        ("D3", NAME, 0, None, Guarantee.EXCEEDED),
        ("M1", NAME, 0, None, Guarantee.HOLDS),
        ("L1", NAME, 0, None, Guarantee.HOLDS),
        ("D1", TopicPartition("others", 0), 0, None, Guarantee.HOLDS),
        ("M14", None, 0, None, Guarantee.HOLDS),
    ],
)
def test_a_loss_counts_if_the_guarantee_held_all_the_time(
    check_id: str, partition: TopicPartition | None, since: int, until: int | None, guarantee: Guarantee
) -> None:
    heard: list[Alarm] = []
    alarm_log(heard).report(check_id, partition, "gone", since=since, until=until)
    assert heard[0].guarantee is guarantee
