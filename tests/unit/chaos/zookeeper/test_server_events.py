"""The event files of a ZooKeeper server that somebody else started, from its transaction log."""

import json
import struct
import time
import zlib
from pathlib import Path
from typing import Any, Final

from laststand.chaos.zookeeper.server_events import ServerEvents
from laststand.emulator.cluster.layout import ClusterLayout
from laststand.emulator.core.eras import era_rules
from laststand.emulator.core.events import NodeStarted
from laststand.emulator.core.types import BrokerId, CauseId, IncarnationId, NodeId, NodeRole
from laststand.emulator.core.zookeeper.identifiers import SessionId
from laststand.emulator.core.zookeeper.nodes.small_nodes import RegisteredEndpoint, encode_broker
from laststand.emulator.node.event_writer import EventWriter
from laststand.emulator.plan.nodes import CONTROLLER

BROKER: Final = BrokerId(NodeId(1))
PATH: Final = b"/brokers/ids/1"
CREATE, CLOSE_SESSION = 1, -11
BEGUN_MS: Final = time.time_ns() // 1_000_000 - 60_000


def layout_in(directory: Path) -> ClusterLayout:
    layout = ClusterLayout(
        run="test",
        directory=directory,
        controller_ids=(CONTROLLER,),
        broker_ids=(BROKER,),
        switches=era_rules("kafka-3.9-zk"),
        properties=(),
        toxiproxy=None,
    )
    (directory / "events").mkdir()
    (layout.data_directory(CONTROLLER) / "version-2").mkdir(parents=True)
    return layout


def start_broker(layout: ClusterLayout, incarnation: int, *, at_ms: int) -> None:
    path = str(layout.event_file(BROKER, incarnation))
    events = EventWriter(path, run="test", node_id=BROKER, incarnation=incarnation)
    events.add(
        NodeStarted(
            cause_id=CauseId("start"),
            role=NodeRole.BROKER,
            incarnation_id=IncarnationId(f"process-{incarnation}"),
            switches={},
            properties={},
            wall_time_ns=(BEGUN_MS + at_ms) * 1_000_000,
        )
    )
    events.close()


def blob(content: bytes) -> bytes:
    return struct.pack(">i", len(content)) + content


def registration() -> bytes:
    data = encode_broker(RegisteredEndpoint(host="localhost", port=9092, rack=""), version=5, now_ms=0)
    return blob(PATH) + blob(data) + struct.pack(">ibi", 0, 1, 1)


def write_log(layout: ClusterLayout, *transactions: tuple[int, int, int, bytes]) -> None:
    """Writes transactions of a session, at a time in ms, of a kind and with a body; zxids count from 1."""
    log = b"ZKLG" + bytes(12)
    for zxid, (session, at_ms, kind, body) in enumerate(transactions, start=1):
        record = struct.pack(">qiqqi", session, 1, zxid, BEGUN_MS + at_ms, kind) + body
        log += struct.pack(">qi", zlib.adler32(record), len(record)) + record + b"B"
    (layout.data_directory(CONTROLLER) / "version-2/log.1").write_bytes(log)


def written(layout: ClusterLayout) -> list[dict[str, Any]]:
    return [json.loads(line) for line in layout.event_file(CONTROLLER, 0).read_text(encoding="utf-8").splitlines()]


def test_a_registration_belongs_to_the_last_process_that_had_started_by_then(tmp_path: Path) -> None:
    layout = layout_in(tmp_path)
    start_broker(layout, 0, at_ms=0)
    events = ServerEvents(layout, has_sync_ledger=False)
    start_broker(layout, 1, at_ms=10_000)
    closed = struct.pack(">i", 1) + blob(PATH)
    write_log(
        layout, (7, 1000, CREATE, registration()), (7, 9000, CLOSE_SESSION, closed), (8, 11_000, CREATE, registration())
    )
    events.found()
    events.close()
    told = written(layout)
    registered = [each["incarnation_id"] for each in told if each["type"] == "BrokerRegistered"]
    assert registered == ["process-0", "process-1"]
    assert events.session_of(BROKER) == SessionId(8)


def test_what_was_written_before_anybody_looked_has_the_time_at_which_it_was(tmp_path: Path) -> None:
    layout = layout_in(tmp_path)
    start_broker(layout, 0, at_ms=0)
    write_log(layout, (7, 1000, CREATE, registration()), (8, 3000, CREATE, blob(b"/a") + blob(b"") + bytes(9)))
    events = ServerEvents(layout, has_sync_ledger=False)
    events.found()
    events.close()
    begun, *told = [each for each in written(layout) if each["type"] != "FileSealed"]
    assert (begun["type"], begun["role"]) == ("NodeStarted", "zookeeper")
    times = [each["time_ns"] - begun["time_ns"] for each in told]
    assert times[0] == 0
    assert times[-1] == 2_000_000_000


def test_a_harness_that_has_copies_asks_for_what_it_lacks(tmp_path: Path) -> None:
    layout = layout_in(tmp_path)

    def copy() -> None:
        if not layout.event_file(BROKER, 0).exists():
            start_broker(layout, 0, at_ms=0)

    events = ServerEvents(layout, has_sync_ledger=False, catch_up=copy)
    write_log(layout, (7, 1000, CREATE, registration()))
    assert events.read(), "of the log it has as much as it needs; of the broker's events nothing yet"
    assert BROKER in events.image.brokers
