"""A run ends when the cluster has settled, and every broker has said that it knows."""

from collections.abc import Callable
from typing import cast

import pytest

from laststand.chaos.play import ending
from laststand.chaos.play.barriers import Observation
from laststand.chaos.play.ending import restore_and_settle
from laststand.chaos.play.target import Target
from laststand.chaos.play.waiting import StepError
from laststand.emulator.core import admin_messages, events
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.types import BrokerEpoch, BrokerId, CauseId, IncarnationId, MetadataOffset, NodeId

END = MetadataOffset(5)
FENCED = -1


class Cluster:
    """Nothing is broken; a broker has applied metadata up to what ``told`` says, from one look to the next.

    ``FENCED`` says that it is fenced; the next time that the cluster is looked at, ``END`` is one offset further.
    """

    cause_id = CauseId("end")
    has_broken_links = False

    def __init__(self, *told: int | None) -> None:
        self.image = MetadataImage()
        self.image.next_offset = END
        self.notes: list[events.Event] = []
        self.waits = 0
        self._end = END
        self._told = list(told)

    async def wait(self, see: Callable[[], Observation], *, timeout_s: float) -> Observation:
        seen = see()
        if not seen.reached:
            self.image.next_offset = MetadataOffset(self.image.next_offset + 1)
            seen = see()
        assert seen.reached, timeout_s
        return seen

    async def committed_end(self) -> MetadataOffset:
        return self._end

    async def pause(self, *, duration_ms: int) -> None:
        assert duration_ms > 0
        self.waits += 1

    async def ask_controller(self, _request: object) -> admin_messages.DescribeClusterResponse:
        offset = self._told[0] if len(self._told) == 1 else self._told.pop(0)
        if offset == FENCED:
            self._end = MetadataOffset(self._end + 1)
        broker = admin_messages.DescribedBroker(
            broker_id=BrokerId(NodeId(0)),
            broker_epoch=BrokerEpoch(1),
            incarnation_id=IncarnationId("a"),
            is_fenced=offset == FENCED,
            in_controlled_shutdown=False,
            applied_offset=None if offset is None else MetadataOffset(offset),
        )
        return admin_messages.DescribeClusterResponse(
            error=ErrorCode.NONE,
            cluster_id="c",
            controller_id=NodeId(100),
            metadata_end_offset=self._end,
            brokers=(broker,),
        )

    def note(self, event: events.Event) -> None:
        self.notes.append(event)


async def settle(cluster: Cluster) -> None:
    await restore_and_settle(cast(Target, cluster), (), more=())


async def test_a_cluster_has_settled_once_every_broker_has_applied_all_metadata() -> None:
    cluster = Cluster(None, 2, 4)
    await settle(cluster)
    assert cluster.waits == 2
    assert cluster.notes == [events.ClusterSettled(cause_id=cluster.cause_id, metadata_offset=END)]


async def test_a_broker_that_stays_behind_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ending, "_LOOKS", 3)
    cluster = Cluster(3)
    with pytest.raises(StepError, match=r"brokers do not get metadata up to 4: 0 \(up to 3\)"):
        await settle(cluster)
    assert cluster.notes == []


async def test_a_broker_that_is_fenced_while_it_is_behind_makes_the_cluster_settle_again() -> None:
    cluster = Cluster(2, FENCED, 2, 5)
    await settle(cluster)
    assert cluster.notes == [events.ClusterSettled(cause_id=cluster.cause_id, metadata_offset=MetadataOffset(END + 1))]


async def test_a_broker_that_is_fenced_again_and_again_is_reported() -> None:
    cluster = Cluster(FENCED)
    with pytest.raises(StepError, match="again and again"):
        await settle(cluster)
    assert cluster.notes == []
