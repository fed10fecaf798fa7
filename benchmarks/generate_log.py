"""Writes a run directory of any size: three brokers, partitions that broker 0 leads, acks=all, nothing lost.

Seven events per batch: appended three times, answered once, the leader's high watermark and two followers'. The final
logs hold real batches, so that verification does all of its work.
"""

import contextlib
import os
import struct
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

import msgspec
from crc32c import crc32c

from emulator.client.history import HISTORY_FILE
from emulator.cluster.process_cluster import event_file_name
from emulator.core.events import AnyEvent
from emulator.core.history import HistoryLine
from emulator.core.switches import Switches, switch_texts
from emulator.core.types import NodeId
from emulator.storage.file_digest import content_of
from emulator.storage.line_file import LineFile

EVENTS_PER_BATCH: Final = 7
_BROKERS: Final = (0, 1, 2)
_CONTROLLER: Final = 100
_HARNESS: Final = 2000
_RECORDS: Final = 10
_PRODUCER: Final = 7
_POLLED_AT_ONCE: Final = 500
_FLUSHED_AT_ONCE: Final = 1000
_TOPIC: Final = {"topic": "orders", "topic_id": "AAAAAAAAAAAAAAAAAAAAAA"}
PARTITIONS: Final = 12
_SWITCHES: Final = switch_texts(Switches())
_ENCODER: Final = msgspec.json.Encoder()

_Line = dict[str, object]


class _Batch(NamedTuple):
    partition: int
    base_offset: int
    crc: int
    content: bytes


def generate_run(path: Path, *, events: int, partitions: int = PARTITIONS) -> None:
    """Writes a run with about ``events`` events (a few dozen at least) into ``path``, which must not exist.

    Args:
        path: the run directory.
        events: how many.
        partitions: of the one topic; batches go to them in turn.
    """
    (path / "events").mkdir(parents=True)
    (path / "cluster.yaml").write_text("era: kip-966\n")
    (path / "scenario.yaml").write_text("name: generated\n")
    count = max(events // EVENTS_PER_BATCH, partitions)

    def batches() -> Iterator[_Batch]:
        return (_batch(number, partitions) for number in range(count))

    for node in _BROKERS:
        _write_events(path, node, _broker_events(node, batches(), partitions))
        data = path / "nodes" / str(node) / "data"
        data.mkdir(parents=True)
        (data / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":1}')
        with contextlib.ExitStack() as stack:
            logs = [stack.enter_context(_new_log(data / f"orders-{number}")) for number in range(partitions)]
            for batch in batches():
                logs[batch.partition].write(batch.content)
    _write_events(path, _CONTROLLER, _controller_events(partitions))
    _write_lines(path / HISTORY_FILE, HistoryLine, _history(batches, count, partitions), {}, "f", "index", "sealed")
    _write_events(path, _HARNESS, _harness_events(path, 2 * len(_BROKERS) + partitions))


def _batch(number: int, partitions: int) -> _Batch:
    turn, partition = divmod(number, partitions)
    base_offset = turn * _RECORDS
    body = struct.pack(">hiqqqhii", 0, _RECORDS - 1, 0, partition, _PRODUCER, 0, base_offset, _RECORDS)
    crc = crc32c(body)
    return _Batch(partition, base_offset, crc, struct.pack(">qiibI", base_offset, len(body) + 9, 0, 2, crc) + body)


def _new_log(directory: Path) -> BinaryIO:
    directory.mkdir()
    (directory / "partition.metadata").write_text(f"version: 0\ntopic_id: {_TOPIC['topic_id']}\n")
    return (directory / f"{0:020}.log").open("wb")


def _write_events(path: Path, node: int, events: Iterator[_Line]) -> None:
    envelope: _Line = {"run": "generated", "node": node, "incarnation": 0}
    name = event_file_name(NodeId(node), 0)
    lines = ({"cause_id": "g", **event} for event in events)
    _write_lines(path / "events" / name, AnyEvent, lines, envelope, "type", "sequence", "FileSealed")


def _write_lines(
    path: Path, kinds: object, lines: Iterator[_Line], envelope: _Line, tag: str, number_name: str, seal: str
) -> None:
    """Writes a file of lines as nodes and clients do, with its seal."""
    file = LineFile(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644), path, constants=envelope)

    def add(number: int, line: _Line) -> None:
        place = {**envelope, number_name: number, "time_ns": number, **line}
        file.add(msgspec.convert(place, kinds), number=number, time_ns=number, text=partial(_ENCODER.encode, place))

    count = 0
    for count, line in enumerate(lines, 1):
        add(count - 1, line)
        if count % _FLUSHED_AT_ONCE == 0:
            file.flush()
    file.flush()
    digest = file.digest.hexdigest()
    add(count, {tag: seal, "cause_id": "g", "lines": count, "digest": digest})
    file.flush()
    file.close()


def _started(node: int, role: str) -> _Line:
    switches = {} if role == "harness" else _SWITCHES
    identity = {"incarnation_id": f"i{node}", "switches": switches, "properties": {}, "wall_time_ns": 0}
    return {"type": "NodeStarted", "role": role, **identity}


def _of(partition: int) -> _Line:
    return {**_TOPIC, "partition": partition}


def _broker_events(node: int, batches: Iterator[_Batch], partitions: int) -> Iterator[_Line]:
    leads = node == _BROKERS[0]
    yield _started(node, "broker")
    opened = {"log_start_offset": 0, "log_end_offset": 0, "high_watermark": 0, "recovery_point": 0, "epochs": []}
    for number in range(partitions):
        yield {"type": "LogOpened", **_of(number), "is_clean": True, **opened}
    if leads:
        yield {"type": "MetadataApplied", "start_offset": 0, "end_offset": 2 * len(_BROKERS) + partitions}
        role = {"leader_epoch": 0, "partition_epoch": 0, "epoch_start_offset": 0, "high_watermark": 0, "isr": _BROKERS}
        for number in range(partitions):
            yield {"type": "BecameLeader", **_of(number), **role}
    for number, (partition, base_offset, crc, _) in enumerate(batches):
        end = base_offset + _RECORDS
        cause = {"cause_id": f"producer-0:{number}"}
        yield {
            "type": "BatchAppended",
            **cause,
            **_of(partition),
            "role": "leader" if leads else "follower",
            "base_offset": base_offset,
            "last_offset": end - 1,
            "leader_epoch": 0,
            "current_leader_epoch": 0,
            "crc": crc,
            "record_count": _RECORDS,
            "producer_id": _PRODUCER,
            "producer_epoch": 0,
            "base_sequence": base_offset,
        }
        if not leads:
            moved = {"old": base_offset, "new": end, "log_end_offset": end, "leader_epoch": 0}
            yield {"type": "FollowerHighWatermarkUpdated", **cause, **_of(partition), **moved}
            continue
        yield {
            "type": "HighWatermarkAdvanced",
            **cause,
            **_of(partition),
            "old": base_offset,
            "new": end,
            "leader_epoch": 0,
            "log_end_offset": end,
            "committed_isr": _BROKERS,
            "maximal_isr": _BROKERS,
            "joiners": (),
            "effective_min_isr": 2,
            "replicas": [{"broker_id": b, "log_end_offset": end, "leader_epoch": 0} for b in _BROKERS],
        }
        answer = {"acks": -1, "error": "NONE", "base_offset": base_offset, "record_count": _RECORDS}
        yield {
            "type": "ProduceAnswered",
            **cause,
            **_of(partition),
            **answer,
            "high_watermark": end,
            "committed_isr": _BROKERS,
            "leader_epoch": 0,
        }
    yield {"type": "NodeStopped"}


def _controller_events(partitions: int) -> Iterator[_Line]:
    yield _started(_CONTROLLER, "controller")
    for node in _BROKERS:
        registered = {"broker_id": node, "broker_epoch": node, "incarnation_id": f"i{node}"}
        before = {"previous_broker_epoch": None, "stored_broker_epoch": None, "is_clean": True}
        yield {"type": "BrokerRegistered", "metadata_offset": node, **registered, **before}
    for node in _BROKERS:
        unfenced = {"broker_id": node, "broker_epoch": node}
        yield {"type": "BrokerUnfenced", "metadata_offset": len(_BROKERS) + node, **unfenced}
    for number in range(partitions):
        yield {
            "type": "PartitionChanged",
            **_of(number),
            "metadata_offset": 2 * len(_BROKERS) + number,
            "reason": "created",
            "election": "none",
            "broker_id": None,
            "effective_min_isr": 2,
            "leader": _BROKERS[0],
            "leader_epoch": 0,
            "partition_epoch": 0,
            "replicas": _BROKERS,
            "isr": _BROKERS,
            "elr": (),
            "last_known_elr": (),
            "last_known_leader": None,
            "leader_recovery_state": 0,
        }
    yield {"type": "NodeStopped"}


def _harness_events(run: Path, metadata_end: int) -> Iterator[_Line]:
    yield _started(_HARNESS, "harness")
    nodes = (*_BROKERS, _CONTROLLER)
    for node in nodes:
        name = event_file_name(NodeId(node), 0)
        yield {"type": "IncarnationStarted", "started_node": node, "started_incarnation": 0, "event_file": name}
    for node in nodes:
        end = {
            "ended_node": node,
            "ended_incarnation": 0,
            "end": "stopped",
            "exit_code": 0,
            "metadata_offset": metadata_end,
        }
        yield {"type": "IncarnationEnded", **end}
    for path in (*sorted((run / "events").iterdir()), run / HISTORY_FILE):
        if path.name != f"{_HARNESS}-0.jsonl":
            lines, digest = content_of(path)
            yield {"type": "FileVouched", "file": str(path.relative_to(run)), "lines": lines, "digest": digest}
    yield {"type": "RunEnded", "problem": None}
    yield {"type": "NodeStopped"}


def _history(batches: Callable[[], Iterator[_Batch]], count: int, partitions: int) -> Iterator[_Line]:
    for number, (partition, base_offset, crc, _) in enumerate(batches()):
        send: _Line = {
            "f": "send",
            "process": "producer-0",
            "operation_id": f"producer-0:{number}",
            **_of(partition),
            "acks": -1,
            "first_record_id": number * _RECORDS,
            "record_count": _RECORDS,
        }
        attempt = {"node": _BROKERS[0], "leader_epoch": 0, "producer_id": _PRODUCER, "producer_epoch": 0}
        tried = {**attempt, "base_sequence": base_offset, "crc": crc, "outcome": "NONE"}
        yield {**send, "type": "invoke"}
        yield {**send, "type": "ok", "base_offset": base_offset, "attempts": [tried]}
    for partition in range(partitions):
        yield from _final_reads(partition, range(partition, count, partitions), partitions)


def _final_reads(partition: int, numbers: range, partitions: int) -> Iterator[_Line]:
    end = len(numbers) * _RECORDS
    for start in range(0, len(numbers), _POLLED_AT_ONCE):
        polled = numbers[start : start + _POLLED_AT_ONCE]
        yield {
            "f": "poll",
            "type": "ok",
            "process": "final",
            "operation_id": f"final:{partition}:{start}",
            "phase": "final",
            **_of(partition),
            "node": _BROKERS[0],
            "position": start * _RECORDS,
            "seek": start == 0,
            "high_watermark": end,
            "log_start_offset": 0,
            "leader_epoch": 0,
            "batches": [
                {
                    "base_offset": batch.base_offset,
                    "last_offset": batch.base_offset + _RECORDS - 1,
                    "leader_epoch": 0,
                    "crc": batch.crc,
                    "producer": "producer-0",
                    "first_record_id": number * _RECORDS,
                    "record_count": _RECORDS,
                }
                for number, batch in ((number, _batch(number, partitions)) for number in polled)
            ],
        }
    whole = {"start_offset": 0, "end_offset": end, "error": None}
    read = {"f": "final_read", "type": "ok", "process": "final", "operation_id": f"final:{partition}:end"}
    yield {**read, **_of(partition), **whole}
