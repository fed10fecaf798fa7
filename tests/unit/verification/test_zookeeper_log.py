"""A ZooKeeper server's transaction log against the events: what one says and the other does not."""

import struct
import zlib

import msgspec
import pytest

from laststand.emulator.core import events
from laststand.emulator.core.types import (
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
from laststand.emulator.verification.facts.controller_terms import state_node
from laststand.emulator.verification.reading.zookeeper_log import contradictions_of_zookeeper, read_zookeeper_log

STATE = state_node("orders", 0)
TOPIC = "/brokers/topics/orders"
ASSIGNMENT = b'{"version":3,"partitions":{"0":[0,1,2]},"adding_replicas":{},"removing_replicas":{}}'
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
    (4, SET, set_data(TOPIC, ASSIGNMENT)),
    (5, CLOSE, struct.pack(">i", 1) + blob(b"/controller")),
)


def changed(zxid: int, **told: object) -> events.PartitionChanged:
    """The partition as the log has it, but for what is told."""
    change = events.PartitionChanged(
        cause_id=CauseId("test"),
        topic="orders",
        partition=0,
        topic_id=TopicId("id-of-orders"),
        metadata_offset=MetadataOffset(zxid),
        reason=ChangeReason.ALTER_PARTITION,
        election=events.Election.NONE,
        broker_id=None,
        effective_min_isr=1,
        leader=BrokerId(NodeId(1)),
        leader_epoch=LeaderEpoch(3),
        partition_epoch=PartitionEpoch(1),
        replicas=(BrokerId(NodeId(0)), BrokerId(NodeId(1)), BrokerId(NodeId(2))),
        isr=(BrokerId(NodeId(0)), BrokerId(NodeId(1))),
        elr=(),
        last_known_elr=(),
        last_known_leader=None,
        leader_recovery_state=LeaderRecoveryState.RECOVERED,
    )
    return msgspec.structs.replace(change, **told)


def told(
    *changes: events.PartitionChanged, left_out: int | None = None, extra: int | None = None
) -> tuple[list[events.ZnodeWritten], list[events.PartitionChanged]]:
    """The events of all writes of the log, and these changes, or those that agree with it."""
    writes = [
        (1, "/controller", ZnodeWrite.CREATED),
        (2, STATE, ZnodeWrite.DATA_CHANGED),
        (4, TOPIC, ZnodeWrite.DATA_CHANGED),
        (5, "/controller", ZnodeWrite.DELETED),
    ]
    written = [
        events.ZnodeWritten(
            cause_id=CauseId("test"), metadata_offset=MetadataOffset(zxid), path=path, write=write, session_id=7
        )
        for zxid, path, write in [*writes, *([] if extra is None else [(extra, STATE, ZnodeWrite.DATA_CHANGED)])]
        if zxid != left_out
    ]
    return written, list(changes or (changed(2), changed(4)))


ISR = (BrokerId(NodeId(0)),)
DIFFERENT = "and the events say different things of"


@pytest.mark.parametrize(
    ("events", "said"),
    [
        (told(), None),
        (told(left_out=5), "has deleted of /controller at zxid 5, and the events do not"),
        (told(extra=6), f"has no data_changed of {STATE} at zxid 6, and the events do"),
        (told(changed(2, isr=ISR)), f"{DIFFERENT} leader and ISR of orders-0 at zxid 2"),
        (told(changed(2, leader=None)), f"{DIFFERENT} leader and ISR of orders-0 at zxid 2"),
        (
            told(changed(2, leader_recovery_state=LeaderRecoveryState.RECOVERING)),
            f"{DIFFERENT} leader and ISR of orders-0 at zxid 2",
        ),
        (told(changed(4, replicas=ISR)), f"{DIFFERENT} the replicas of orders-0 at zxid 4"),
    ],
)
def test_what_the_log_and_the_events_do_not_agree_on(
    events: tuple[list[events.ZnodeWritten], list[events.PartitionChanged]], said: str | None
) -> None:
    found = list(contradictions_of_zookeeper(100, read_zookeeper_log([LOG]), *events))
    assert found == ([] if said is None else [f"the transaction log of node 100 {said}"])


def test_a_server_that_starts_again_writes_some_of_it_again() -> None:
    again = file((5, CLOSE, struct.pack(">i", 1) + blob(b"/controller")))
    assert read_zookeeper_log([LOG, again]) == read_zookeeper_log([LOG])


def test_a_torn_record_ends_a_file() -> None:
    assert read_zookeeper_log([LOG[:-80]]) == read_zookeeper_log([LOG])[:-1]
