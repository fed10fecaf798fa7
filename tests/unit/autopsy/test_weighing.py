"""Records that the election of each replica would lose."""

from laststand.emulator.autopsy.comparison import Log
from laststand.emulator.autopsy.weighing import ReplicaLog, weigh
from laststand.emulator.core.types import BrokerId, NodeId, Offset
from tests.unit.autopsy.logs import Batch, log_of


def broker(number: int) -> ReplicaLog:
    return ReplicaLog(BrokerId(NodeId(number)), f"node-{number}/orders-0")


COMMON = [Batch(10, 0, 1)]
LOGS: dict[ReplicaLog, Log] = {
    broker(1): log_of([*COMMON, Batch(5, 0, 2), Batch(2, 0, 3)]),
    broker(2): log_of([*COMMON, Batch(5, 0, 2)]),
    broker(3): log_of([*COMMON, Batch(3, 2, 4)]),
}


def test_the_longest_log_is_that_of_the_newest_epoch() -> None:
    assert weigh(LOGS, {}, is_compacted=False).longest == broker(3)


def test_of_equal_logs_the_first_is_the_longest() -> None:
    logs = {broker(2): log_of(COMMON), broker(1): log_of(COMMON)}
    weighing = weigh(logs, {}, is_compacted=False)
    assert weighing.longest == broker(2)
    assert weighing.losses == {broker(2): (), broker(1): ()}


def test_an_election_loses_what_only_others_hold() -> None:
    weighing = weigh(LOGS, {}, is_compacted=False)
    lost = {
        (elected.broker_id, loss.held_by): loss.lost.records
        for elected, losses in weighing.losses.items()
        for loss in losses
    }
    assert lost == {(1, 3): 3, (2, 1): 2, (2, 3): 3, (3, 1): 7, (3, 2): 5}
    assert [weighing.against_longest(broker(each)) for each in (1, 2, 3)] == [3, 3, 0]


def test_a_high_watermark_counts_for_logs_that_agree_and_for_no_others() -> None:
    # Broker 2 knows more of what was committed than broker 1; broker 3 has gone its own way since.
    weighing = weigh(
        LOGS,
        {broker(1): Offset(11), broker(2): Offset(15), broker(3): Offset(13)},
        is_compacted=False,
    )
    committed = {
        (elected.broker_id, loss.held_by): loss.committed.records
        for elected, losses in weighing.losses.items()
        for loss in losses
    }
    assert committed == {(1, 3): 3, (2, 1): 0, (2, 3): 3, (3, 1): 5, (3, 2): 5}
    assert weighing.committed(broker(3)) == 5


def test_without_high_watermarks_nothing_is_known_to_be_committed() -> None:
    weighing = weigh(LOGS, {}, is_compacted=False)
    assert all(weighing.committed(each) == 0 for each in LOGS)


def test_two_logs_of_one_broker_are_weighed_like_any_others() -> None:
    other = ReplicaLog(broker(1).broker_id, "backup/orders-0")
    weighing = weigh({broker(1): LOGS[broker(1)], other: LOGS[broker(3)]}, {}, is_compacted=False)
    assert weighing.longest == other
    assert [(loss.held_in, loss.lost.records) for loss in weighing.losses[broker(1)]] == [("backup/orders-0", 3)]
    assert weighing.against_longest(broker(1)) == 3
