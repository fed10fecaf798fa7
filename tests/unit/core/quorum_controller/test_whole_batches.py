"""Committed batches as brokers see them: a metadata transaction at once, without what an aborted one decided."""

from laststand.emulator.core import records
from laststand.emulator.core.events import OtherRecordCommitted
from laststand.emulator.core.quorum_controller.values import CommittedBatch
from laststand.emulator.core.quorum_controller.whole_batches import WholeBatches
from laststand.emulator.core.types import CauseId, MetadataOffset

BEGIN = records.BeginTransactionRecord()
END = records.EndTransactionRecord()
ABORT = records.AbortTransactionRecord()
LEVEL = records.FeatureLevelRecord(name="metadata.version", feature_level=20)


def committed(base_offset: int, *of: records.Record) -> CommittedBatch:
    described = tuple(
        OtherRecordCommitted(
            cause_id=CauseId("unit"), metadata_offset=MetadataOffset(offset), record=type(record).__name__
        )
        for offset, record in enumerate(of, base_offset)
    )
    return CommittedBatch(
        batch=records.MetadataBatch(base_offset=MetadataOffset(base_offset), records=of), events=described
    )


def offsets(whole: CommittedBatch | None) -> list[int]:
    assert whole is not None
    return [event.metadata_offset for event in whole.events if isinstance(event, OtherRecordCommitted)]


def test_a_batch_with_a_whole_transaction_passes() -> None:
    batch = committed(0, BEGIN, LEVEL, END)
    assert WholeBatches().add(batch) is batch


def test_a_transaction_of_several_batches_is_one() -> None:
    whole = WholeBatches()
    assert whole.add(committed(4, LEVEL)) is not None
    assert whole.add(committed(5, BEGIN, LEVEL)) is None
    assert whole.add(committed(7, LEVEL)) is None
    joined = whole.add(committed(8, END, LEVEL))
    assert joined is not None
    assert joined.batch == records.MetadataBatch(
        base_offset=MetadataOffset(5), records=(BEGIN, LEVEL, LEVEL, END, LEVEL)
    )
    assert offsets(joined) == [5, 6, 7, 8, 9]


def test_what_an_aborted_transaction_decided_is_no_fact() -> None:
    whole = WholeBatches()
    assert whole.add(committed(5, BEGIN, LEVEL)) is None
    joined = whole.add(committed(7, ABORT, BEGIN, LEVEL, END))
    assert joined is not None
    assert offsets(joined) == [5, 7, 8, 9, 10]
    assert len(joined.batch.records) == 6, "its records keep their offsets"
