"""The clients' history in Jepsen's form (EDN), that of its Kafka workload: sends and polls of records.

::

    {:index 0, :time 12, :type :invoke, :process 0, :f :send, :value [[:send "orders-0" "producer-0/0"]]}
    {:index 1, :time 40, :type :ok, :process 0, :f :send, :value [[:send "orders-0" [0 "producer-0/0"]]]}

A Jepsen process does one thing at a time, and stops once an outcome is unknown. A producer with several sends in flight
becomes as many processes; a process whose send has no known outcome is continued as another one. A poll has one line in
a history of Laststand, so its beginning here is its end there. The final consumer's statement that it has finished is
left out.
"""

import heapq
import json
from collections.abc import Iterable, Iterator

from laststand.emulator.core.history import HistoryLine, OperationType, PollOperation, SendOperation


def jepsen_lines(operations: Iterable[HistoryLine]) -> Iterator[str]:
    """Yields the lines of a history, in its order."""
    processes = _Processes()
    index = 0
    for operation in operations:
        match operation:
            case SendOperation():
                values, name = _sent(operation), f"{operation.process} {operation.operation_id}"
                if operation.type is OperationType.INVOKE:
                    process = processes.begin(name)
                else:
                    process = processes.end(name, is_known=operation.type is not OperationType.INFO)
                yield _line(index, operation, operation.type, process, "send", values)
                index += 1
            case PollOperation():
                process = processes.begin(operation.process)
                processes.end(operation.process, is_known=True)
                yield _line(index, operation, OperationType.INVOKE, process, "poll", "[[:poll]]")
                yield _line(index + 1, operation, OperationType.OK, process, "poll", _polled(operation))
                index += 2
            case _:
                pass


class _Processes:
    """Numbers of Jepsen processes: free numbers are reused."""

    def __init__(self) -> None:
        self._free: list[int] = []
        self._count = 0
        self._busy: dict[str, int] = {}

    def begin(self, name: str) -> int:
        if not self._free:
            heapq.heappush(self._free, self._count)
            self._count += 1
        self._busy[name] = heapq.heappop(self._free)
        return self._busy[name]

    def end(self, name: str, *, is_known: bool) -> int:
        process = self._busy.pop(name)
        if is_known:
            heapq.heappush(self._free, process)
        return process


def _line(
    index: int, operation: SendOperation | PollOperation, type_: OperationType, process: int, f: str, value: str
) -> str:
    error = "" if operation.error is None else f", :error {json.dumps(operation.error)}"
    return (
        f"{{:index {index}, :time {operation.time_ns}, :type :{type_.value}, :process {process}, :f :{f}, "
        f":value {value}{error}}}"
    )


def _key(operation: SendOperation | PollOperation) -> str:
    return json.dumps(f"{operation.topic}-{operation.partition}")


def _sent(send: SendOperation) -> str:
    mops = []
    for number in range(send.record_count):
        value = json.dumps(f"{send.process}/{send.first_record_id + number}")
        if send.type is OperationType.OK and send.base_offset is not None:
            value = f"[{send.base_offset + number} {value}]"
        mops.append(f"[:send {_key(send)} {value}]")
    return f"[{' '.join(mops)}]"


def _polled(poll: PollOperation) -> str:
    records = [
        f"[{batch.base_offset + number} {json.dumps(f'{batch.producer}/{batch.first_record_id + number}')}]"
        for batch in poll.batches
        for number in range(batch.record_count)
    ]
    return f"[[:poll {{{_key(poll)} [{' '.join(records)}]}}]]"
