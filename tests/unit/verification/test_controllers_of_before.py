"""M14 where ZooKeeper has the metadata: a decision comes from whoever was elected last."""

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
from laststand.emulator.verification.facts.cluster import ClusterFacts
from laststand.emulator.verification.rules.check import ClusterCheck
from laststand.emulator.verification.rules.checks import CHECKS
from laststand.emulator.verification.tables.timeline import CollectedEvent

_CAUSE = CauseId("test")
_STATE = "/brokers/topics/orders/partitions/0/state"

[CHECK] = [check for check in CHECKS if isinstance(check, ClusterCheck) and check.check_id == "M14"]


def written(
    zxid: int, session_id: int, path: str = _STATE, write: ZnodeWrite = ZnodeWrite.DATA_CHANGED
) -> events.Event:
    return events.ZnodeWritten(
        cause_id=_CAUSE, metadata_offset=MetadataOffset(zxid), path=path, write=write, session_id=session_id
    )


def elected(zxid: int, session_id: int) -> events.Event:
    return written(zxid, session_id, "/controller", ZnodeWrite.CREATED)


def changed(zxid: int, leader_epoch: int) -> events.Event:
    brokers = (BrokerId(NodeId(0)), BrokerId(NodeId(1)))
    return events.PartitionChanged(
        cause_id=_CAUSE,
        topic="orders",
        partition=0,
        topic_id=TopicId("id-of-orders"),
        metadata_offset=MetadataOffset(zxid),
        reason=ChangeReason.ELECT_LEADERS,
        election=events.Election.ISR,
        broker_id=None,
        effective_min_isr=1,
        leader=brokers[0],
        leader_epoch=LeaderEpoch(leader_epoch),
        partition_epoch=PartitionEpoch(zxid),
        replicas=brokers,
        isr=brokers,
        elr=(),
        last_known_elr=(),
        last_known_leader=None,
        leader_recovery_state=LeaderRecoveryState.RECOVERED,
    )


@pytest.mark.parametrize(
    ("events", "found"),
    [
        ((elected(1, 7), written(2, 7), changed(2, 0), elected(3, 8), written(4, 8), changed(4, 1)), []),
        ((elected(1, 7), written(2, 7), changed(2, 0), elected(3, 8), written(4, 7), changed(4, 1)), [4]),
        # A leader's own write leaves the leader epoch alone.
        ((elected(1, 7), written(2, 7), changed(2, 0), elected(3, 8), written(4, 9), changed(4, 0)), []),
        ((written(2, 7), changed(2, 0)), []),
    ],
)
def test_changes_by_a_former_controller_are_found(events: tuple[events.Event, ...], found: list[int]) -> None:
    cluster = ClusterFacts()
    for sequence, event in enumerate(events):
        cluster.events.add(CollectedEvent(node=100, incarnation=1, sequence=sequence, event=event))
    assert [finding.position for finding in CHECK.find(cluster)] == found
