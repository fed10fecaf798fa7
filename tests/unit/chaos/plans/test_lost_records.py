"""Records that count as lost: acknowledged by all, and not read at the end."""

from laststand.chaos.plans.lost_records import RecordName, lost_records
from laststand.emulator.core.history import OperationType, PolledBatch, PollOperation, SendOperation
from laststand.emulator.core.types import CauseId, LeaderEpoch, NodeId, Offset


def sent(first: int, count: int, *, outcome: OperationType = OperationType.OK, acks: int = -1) -> SendOperation:
    return SendOperation(
        index=0,
        time_ns=0,
        type=outcome,
        process="producer-all",
        operation_id=CauseId(f"producer-all:{first}"),
        topic="orders",
        topic_id=None,
        partition=0,
        acks=acks,
        first_record_id=first,
        record_count=count,
        base_offset=None,
        attempts=(),
        error=None,
    )


def read(first: int, count: int, *, by: str = "final-consumer") -> PollOperation:
    batch = PolledBatch(
        base_offset=Offset(first),
        last_offset=Offset(first + count - 1),
        leader_epoch=LeaderEpoch(0),
        crc=1,
        producer="producer-all",
        first_record_id=first,
        record_count=count,
    )
    return PollOperation(
        index=0,
        time_ns=0,
        type=OperationType.OK,
        process=by,
        operation_id=CauseId("read"),
        phase="final",
        topic="orders",
        topic_id=None,
        partition=0,
        node=NodeId(0),
        position=Offset(0),
        leader_epoch=None,
        seek=False,
        high_watermark=None,
        log_start_offset=None,
        batches=(batch,),
    )


def named(*record_ids: int) -> frozenset[RecordName]:
    return frozenset(RecordName("orders", 0, "producer-all", record_id) for record_id in record_ids)


def test_a_record_that_is_read_at_the_end_is_not_lost() -> None:
    assert lost_records([sent(0, 3), read(0, 2)]) == named(2)


def test_what_was_read_earlier_is_lost_all_the_same() -> None:
    assert lost_records([sent(0, 2), read(0, 2, by="consumer-0")]) == named(0, 1)


def test_only_what_all_acknowledged_counts() -> None:
    unknown = sent(0, 1, outcome=OperationType.INFO)
    assert lost_records([unknown, sent(1, 1, outcome=OperationType.INVOKE), sent(2, 1, acks=1)]) == frozenset()
