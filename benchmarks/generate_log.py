"""Writes a run directory of any size: three brokers, one partition, acks=all, nothing lost.

Seven events per batch: appended three times, answered once, the leader's high watermark and two followers'. The final
logs hold real batches, so that verification does all of its work.
"""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
from crc32c import crc32c

EVENTS_PER_BATCH: Final = 7
_BROKERS: Final = (0, 1, 2)
_CONTROLLER: Final = 100
_HARNESS: Final = 2000
_RECORDS: Final = 10
_POLLED_AT_ONCE: Final = 500
_PARTITION: Final = {"topic": "orders", "partition": 0, "topic_id": "AAAAAAAAAAAAAAAAAAAAAA"}
_SWITCHES: Final = {"elr": "on", "hw_requires_min_isr": "on", "unclean_detection": "on"}
_ENCODER: Final = msgspec.json.Encoder()

_Line = dict[str, object]


def generate_run(path: Path, *, events: int) -> None:
    """Writes a run with about ``events`` events (a few dozen at least) into ``path``, which must not exist."""
    (path / "events").mkdir(parents=True)
    (path / "cluster.yaml").write_text("era: kip-966\n")
    (path / "scenario.yaml").write_text("name: generated\n")
    batches = tuple(_batches(max(events // EVENTS_PER_BATCH, 1)))
    for node in _BROKERS:
        _write_events(path, node, _broker_events(node, batches))
        data = path / "nodes" / str(node) / "data"
        (data / "orders-0").mkdir(parents=True)
        (data / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":1}')
        (data / "orders-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {_PARTITION['topic_id']}\n")
        (data / "orders-0" / f"{0:020}.log").write_bytes(b"".join(content for _, _, content in batches))
    _write_events(path, _CONTROLLER, _controller_events())
    _write_events(path, _HARNESS, _harness_events())
    with (path / "history.jsonl").open("wb") as file:
        for index, line in enumerate(_history(batches)):
            file.write(_ENCODER.encode({"index": index, "time_ns": index, **line}) + b"\n")


def _batches(count: int) -> Iterator[tuple[int, int, bytes]]:
    for number in range(count):
        body = struct.pack(">hiqqqhii", 0, _RECORDS - 1, 0, 0, 7, 0, number * _RECORDS, _RECORDS)
        crc = crc32c(body)
        yield number * _RECORDS, crc, struct.pack(">qiibI", number * _RECORDS, len(body) + 9, 0, 2, crc) + body


def _write_events(path: Path, node: int, events: Iterator[_Line]) -> None:
    with (path / "events" / f"{node}-0.jsonl").open("wb") as file:
        for sequence, event in enumerate(events):
            envelope = {"run": "generated", "node": node, "incarnation": 0, "sequence": sequence, "time_ns": sequence}
            file.write(_ENCODER.encode({**envelope, "cause_id": "g", **event}) + b"\n")


def _started(node: int, role: str) -> _Line:
    switches = {} if role == "harness" else _SWITCHES
    identity = {"incarnation_id": f"i{node}", "switches": switches, "properties": {}, "wall_time_ns": 0}
    return {"type": "NodeStarted", "role": role, **identity}


def _broker_events(node: int, batches: tuple[tuple[int, int, bytes], ...]) -> Iterator[_Line]:
    leads = node == _BROKERS[0]
    yield _started(node, "broker")
    opened = {"log_start_offset": 0, "log_end_offset": 0, "high_watermark": 0, "recovery_point": 0, "epochs": []}
    yield {"type": "LogOpened", **_PARTITION, "is_clean": True, **opened}
    if leads:
        yield {"type": "MetadataApplied", "start_offset": 0, "end_offset": 4}
        role = {"leader_epoch": 0, "partition_epoch": 0, "epoch_start_offset": 0, "high_watermark": 0, "isr": _BROKERS}
        yield {"type": "BecameLeader", **_PARTITION, **role}
    for base_offset, crc, _ in batches:
        end = base_offset + _RECORDS
        yield {
            "type": "BatchAppended",
            **_PARTITION,
            "role": "leader" if leads else "follower",
            "base_offset": base_offset,
            "last_offset": end - 1,
            "leader_epoch": 0,
            "current_leader_epoch": 0,
            "crc": crc,
            "record_count": _RECORDS,
            "producer_id": 7,
            "producer_epoch": 0,
            "base_sequence": base_offset,
        }
        if not leads:
            moved = {"old": base_offset, "new": end, "log_end_offset": end, "leader_epoch": 0}
            yield {"type": "FollowerHighWatermarkUpdated", **_PARTITION, **moved}
            continue
        yield {
            "type": "HighWatermarkAdvanced",
            **_PARTITION,
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
            **_PARTITION,
            **answer,
            "high_watermark": end,
            "committed_isr": _BROKERS,
            "leader_epoch": 0,
        }
    yield {"type": "NodeStopped"}


def _controller_events() -> Iterator[_Line]:
    yield _started(_CONTROLLER, "controller")
    for node in _BROKERS:
        registered = {"broker_id": node, "broker_epoch": node, "incarnation_id": f"i{node}"}
        before = {"previous_broker_epoch": None, "stored_broker_epoch": None, "is_clean": True}
        yield {"type": "BrokerRegistered", "metadata_offset": node, **registered, **before}
    yield {
        "type": "PartitionChanged",
        **_PARTITION,
        "metadata_offset": len(_BROKERS),
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


def _harness_events() -> Iterator[_Line]:
    yield _started(_HARNESS, "harness")
    nodes = (*_BROKERS, _CONTROLLER)
    for node in nodes:
        name = f"{node}-0.jsonl"
        yield {"type": "IncarnationStarted", "started_node": node, "started_incarnation": 0, "event_file": name}
    for node in nodes:
        end = {"ended_node": node, "ended_incarnation": 0, "end": "stopped", "exit_code": 0, "metadata_offset": 4}
        yield {"type": "IncarnationEnded", **end}
    yield {"type": "RunEnded", "problem": None}
    yield {"type": "NodeStopped"}


def _history(batches: tuple[tuple[int, int, bytes], ...]) -> Iterator[_Line]:
    for number, (base_offset, crc, _) in enumerate(batches):
        send: _Line = {
            "f": "send",
            "process": "producer-0",
            "operation_id": f"producer-0:{number}",
            **_PARTITION,
            "acks": -1,
            "first_record_id": base_offset,
            "record_count": _RECORDS,
        }
        attempt = {"node": _BROKERS[0], "leader_epoch": 0, "producer_id": 7, "producer_epoch": 0}
        tried = {**attempt, "base_sequence": base_offset, "crc": crc, "outcome": "NONE"}
        yield {**send, "type": "invoke"}
        yield {**send, "type": "ok", "base_offset": base_offset, "attempts": [tried]}
    for start in range(0, len(batches), _POLLED_AT_ONCE):
        yield {
            "f": "poll",
            "type": "ok",
            "process": "final",
            "operation_id": f"final:{start}",
            "phase": "final",
            **_PARTITION,
            "node": _BROKERS[0],
            "position": start * _RECORDS,
            "seek": start == 0,
            "high_watermark": len(batches) * _RECORDS,
            "log_start_offset": 0,
            "leader_epoch": 0,
            "batches": [
                {
                    "base_offset": base_offset,
                    "last_offset": base_offset + _RECORDS - 1,
                    "leader_epoch": 0,
                    "crc": crc,
                    "producer": "producer-0",
                    "first_record_id": base_offset,
                    "record_count": _RECORDS,
                }
                for base_offset, crc, _ in batches[start : start + _POLLED_AT_ONCE]
            ],
        }
    whole = {"start_offset": 0, "end_offset": len(batches) * _RECORDS, "error": None}
    read = {"f": "final_read", "type": "ok", "process": "final", "operation_id": "final:end"}
    yield {**read, **_PARTITION, **whole}
