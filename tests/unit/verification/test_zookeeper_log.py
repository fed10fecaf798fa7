"""A ZooKeeper server's transaction log against the events: what one says and the other does not."""

import struct
import zlib

import pytest

from emulator.core.events import Election, Event, PartitionChanged, ZnodeWritten
from emulator.core.types import (
    BrokerId,
    CauseId,
    ChangeReason,
    LeaderEpoch,
    LeaderRecoveryState,
    MetadataOffset,
    NodeId,
    PartitionEpoch,
    TopicId,
    ZnodeWrite,
)
from emulator.verification.controller_terms import state_node
from emulator.verification.timeline import CollectedEvent, Timeline
from emulator.verification.zookeeper_log import contradictions_of_zookeeper, read_zookeeper_log

STATE = state_node("orders", 0)
DATA = b'{"version":1,"leader":1,"leader_epoch":3,"controller_epoch":1,"isr":[1,0]}'
CREATE, SET, MULTI, CLOSE = 1, 5, 14, -11


def blob(content: bytes) -> bytes:
    return struct.pack(">i", len(content)) + content


def file(*transactions: tuple[int, int, bytes]) -> bytes:
    """A log with one record for each zxid, kind and body."""
    records = b""
    for zxid, kind, body in transactions:
        record = struct.pack(">qiqqi", 7, 1, zxid, 0, kind) + body
        records += struct.pack(">qi", zlib.adler32(record), len(record)) + record + b"B"
    return b"ZKLG" + bytes(12) + records + bytes(64)


def set_data(path: str, data: bytes) -> bytes:
    return blob(path.encode()) + blob(data) + struct.pack(">i", 1)


LOG = file(
    (1, CREATE, blob(b"/controller") + blob(b"{}") + bytes(9)),
    (2, MULTI, struct.pack(">i", 1) + struct.pack(">i", SET) + blob(set_data(STATE, DATA))),
    (3, CLOSE, struct.pack(">i", 1) + blob(b"/controller")),
)


def told(*, isr: tuple[int, ...] = (0, 1), left_out: int | None = None, extra: int | None = None) -> Timeline:
    writes = [
        (1, "/controller", ZnodeWrite.CREATED),
        (2, STATE, ZnodeWrite.DATA_CHANGED),
        (3, "/controller", ZnodeWrite.DELETED),
    ]
    events: list[Event] = [
        ZnodeWritten(
            cause_id=CauseId("test"), metadata_offset=MetadataOffset(zxid), path=path, write=write, session_id=7
        )
        for zxid, path, write in [*writes, *([] if extra is None else [(extra, STATE, ZnodeWrite.DATA_CHANGED)])]
        if zxid != left_out
    ]
    members = tuple(BrokerId(NodeId(member)) for member in isr)
    events.append(
        PartitionChanged(
            cause_id=CauseId("test"),
            topic="orders",
            partition=0,
            topic_id=TopicId("id-of-orders"),
            metadata_offset=MetadataOffset(2),
            reason=ChangeReason.ALTER_PARTITION,
            election=Election.NONE,
            broker_id=None,
            effective_min_isr=1,
            leader=BrokerId(NodeId(1)),
            leader_epoch=LeaderEpoch(3),
            partition_epoch=PartitionEpoch(1),
            replicas=members,
            isr=members,
            elr=(),
            last_known_elr=(),
            last_known_leader=None,
            leader_recovery_state=LeaderRecoveryState.RECOVERED,
        )
    )
    collected = [
        CollectedEvent(node=100, incarnation=0, sequence=number, event=event) for number, event in enumerate(events)
    ]
    return Timeline(events=tuple(collected))


@pytest.mark.parametrize(
    ("timeline", "said"),
    [
        (told(), None),
        (told(left_out=3), "has deleted of /controller at zxid 3, and the events do not"),
        (told(extra=4), f"has no data_changed of {STATE} at zxid 4, and the events do"),
        (told(isr=(0, 1, 2)), "and the events say different things of leader and ISR of orders-0 at zxid 2"),
    ],
)
def test_what_the_log_and_the_events_do_not_agree_on(timeline: Timeline, said: str | None) -> None:
    found = list(
        contradictions_of_zookeeper(
            100, read_zookeeper_log([LOG]), timeline.of(ZnodeWritten), timeline.of(PartitionChanged)
        )
    )
    assert found == ([] if said is None else [f"the transaction log of node 100 {said}"])


def test_a_server_that_starts_again_writes_some_of_it_again() -> None:
    again = file((3, CLOSE, struct.pack(">i", 1) + blob(b"/controller")))
    assert read_zookeeper_log([LOG, again]) == read_zookeeper_log([LOG])


def test_a_torn_record_ends_a_file() -> None:
    assert read_zookeeper_log([LOG[:-80]]) == read_zookeeper_log([LOG])[:-1]
