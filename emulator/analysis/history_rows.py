"""The clients' histories as rows: one per operation, with begin and end."""

from collections.abc import Iterator

from laststand.emulator.analysis.run_source import RunClock, RunSource
from laststand.emulator.analysis.schema import Milliseconds, Nanoseconds, Records, Seconds
from laststand.emulator.analysis.tables import HistoryRow, row_of
from laststand.emulator.core.history import FinalReadOperation, OperationType, PollOperation, SendOperation


def history_rows(source: RunSource) -> Iterator[tuple[Nanoseconds, HistoryRow]]:
    """Yields every operation, with the time of its begin; in a complete run, each send has an outcome."""
    begun: dict[str, int] = {}
    for operation in source.operations:
        match operation:
            case SendOperation(type=OperationType.INVOKE):
                begun[operation.operation_id] = operation.time_ns
            case SendOperation():
                begun_ns = begun[operation.operation_id]
                yield Nanoseconds(begun_ns), _send(operation, begun_ns, source.clock)
            case PollOperation():
                yield Nanoseconds(operation.time_ns), _poll(operation, source.clock.seconds(operation.time_ns))
            case FinalReadOperation():
                yield Nanoseconds(operation.time_ns), _final_read(operation, source.clock.seconds(operation.time_ns))


def _send(operation: SendOperation, begun_ns: int, clock: RunClock) -> HistoryRow:
    return row_of(
        HistoryRow,
        operation,
        kind="send",
        outcome=operation.type.value,
        end_s=clock.seconds(operation.time_ns),
        latency_ms=Milliseconds((operation.time_ns - begun_ns) / 1e6),
        node=operation.attempts[-1].node if operation.attempts else None,
    )


def _poll(operation: PollOperation, end_s: Seconds) -> HistoryRow:
    received = Records(sum(batch.record_count for batch in operation.batches))
    return row_of(HistoryRow, operation, kind="poll", outcome=operation.type.value, end_s=end_s, record_count=received)


def _final_read(operation: FinalReadOperation, end_s: Seconds) -> HistoryRow:
    return row_of(HistoryRow, operation, kind="final_read", outcome=operation.type.value, end_s=end_s)
