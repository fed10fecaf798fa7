"""Stories of replicas that count as what they are not any more, or are not told what they are."""

import pytest

from laststand.emulator.core import admin_messages
from laststand.emulator.core.zookeeper import control_messages
from laststand.emulator.core.zookeeper.nodes import paths
from laststand.emulator.simulator.disk.disk import Disk
from tests.simulation.test_zookeeper_stories import ALL_ERAS, WRITING_ERAS, acked
from tests.simulation.zookeeper_cluster import LAG_MS, ORDERS, ZooKeeperCluster, broker

PREFERRED = admin_messages.ElectLeadersRequest(
    election_type=admin_messages.RequestedElection.PREFERRED, partitions=None
)
RELEASES_WITHOUT_ELIGIBILITY = ("kafka-2.5-zk", "kafka-2.6-zk", "kafka-3.1-zk", "kafka-3.2-zk")


def _joining(era: str) -> ZooKeeperCluster:
    """Returns a cluster in which leader 2 wants to add 3, which has caught up, and its wish is on its way."""
    cluster = ZooKeeperCluster(1, 2, 3, 4, era=era)
    cluster.create_topic(3, 2, 4)
    cluster.cut_link(3, 2)
    cluster.expire(3)
    cluster.produce(2)
    cluster.advance(2 * LAG_MS)
    assert "leader=2 isr=2,4 " in cluster.shown()
    acked(cluster, 2)
    if era in WRITING_ERAS:
        cluster.hold_zookeeper(2, after=0)
    else:
        cluster.cut_link(2, 1)
    cluster.cut.discard((broker(3), broker(2)))
    cluster.advance(500)
    assert type(cluster[2].partition.isr_state).__name__ == "PendingExpand"
    return cluster


def _arrive(cluster: ZooKeeperCluster, era: str) -> None:
    """Lets the wish arrive."""
    if era in WRITING_ERAS:
        cluster.release_zookeeper(2)
    else:
        cluster.cut.discard((broker(2), broker(1)))
    cluster.advance(500)


@pytest.mark.parametrize("era", ALL_ERAS)
def test_a_follower_that_died_just_after_it_caught_up(era: str) -> None:
    """Z04: KIP-841 keeps the dead one out; before, the high watermark waits for it as long as for any that lags."""
    cluster = _joining(era)
    cluster.crash(3)
    _arrive(cluster, era)
    assert ("isr=2,4,3 " in cluster.shown()) is (era in RELEASES_WITHOUT_ELIGIBILITY)
    _, answer = cluster.produce(2)
    cluster.advance(1_000)
    assert cluster.is_acked(answer) is (era not in RELEASES_WITHOUT_ELIGIBILITY)
    cluster.advance(2 * LAG_MS)
    assert cluster.is_acked(answer)
    assert "isr=2,4 " in cluster.shown()


@pytest.mark.parametrize("era", ALL_ERAS)
def test_a_follower_that_comes_back_with_an_empty_disk_while_it_is_added(era: str) -> None:
    """Z18: no ZooKeeper cluster knows which process of a broker caught up (KIP-903)."""
    cluster = _joining(era)
    kept = cluster[2].records()
    cluster.crash(3)
    cluster[3].disk = Disk()
    cluster.cut_link(3, 2)
    cluster.start(3)
    _arrive(cluster, era)
    assert "leader=2 isr=2,4,3 " in cluster.shown()
    cluster.crash(2)
    cluster.advance(1_000)
    assert cluster.shown().startswith("leader=3 ")  # the first of the assignment that is in the ISR
    assert cluster[3].records() == []
    assert cluster[4].records() != kept  # it follows, and cuts off what it had


@pytest.mark.parametrize("era", ALL_ERAS)
def test_a_broker_that_is_to_hold_nothing_any_more(era: str) -> None:
    """Z16: it is told no role at all, so that only an empty list, which no release sends, tells it of its strays."""
    cluster = ZooKeeperCluster(1, 2, 3, era=era)
    cluster.create_topic(2, 3, 1)
    acked(cluster, 2)
    cluster.crash(3)
    cluster.reassign(2, 1)
    cluster.start(3)
    told = [request for request in cluster[3].told if isinstance(request, control_messages.LeaderAndIsrRequest)]
    if era == "kip-550-zk":
        (request,) = told
        assert request.contains_all_replicas
        assert request.partitions == ()
    else:
        assert told == []
    assert (ORDERS in cluster[3].disk.logs) is (era != "kip-550-zk")


@pytest.mark.parametrize("era", ALL_ERAS)
def test_the_only_member_of_the_isr_wants_to_go_and_somebody_else_dies(era: str) -> None:
    """Z23: who is shutting down is not online to an election; with unclean leaders allowed, another takes over."""
    cluster = ZooKeeperCluster(1, 2, 3, 4, era=era, min_insync_replicas=1)
    cluster.create_topic(2, 3, config={"unclean.leader.election.enable": "true", "min.insync.replicas": "1"})
    cluster.cut_link(3, 2)
    cluster.produce(2)
    cluster.advance(2 * LAG_MS)
    assert "leader=2 isr=2 " in cluster.shown()
    record = acked(cluster, 2)
    cluster.stop(2)  # it leads on, as nobody else may
    assert not cluster[2].is_down
    assert "leader=2 isr=2 " in cluster.shown()
    cluster.crash(4)
    assert cluster.shown().startswith("leader=3 isr=3 ")
    assert not cluster[2].is_down
    cluster.cut.clear()
    cluster.advance(20_000)
    assert record not in cluster[3].records()


@pytest.mark.parametrize("era", ALL_ERAS)
def test_a_topic_is_deleted_while_it_is_being_reassigned(era: str) -> None:
    """Z24: it is meant to wait; a request that comes during the reassignment does not."""
    cluster = ZooKeeperCluster(1, 2, 3, 4, era=era)
    cluster.create_topic(2, 3)
    cluster.cut_link(4, 2)
    cluster.reassign(2, 4)
    assert ORDERS in cluster[4].disk.logs
    cluster.delete_topic()
    cluster.advance(1_000)
    assert cluster.server.children(paths.TOPICS) == ()
    assert [number for number in (2, 3, 4) if ORDERS in cluster[number].disk.logs] == []


@pytest.mark.parametrize("era", ALL_ERAS)
def test_a_role_that_comes_before_its_leader_is_known(era: str) -> None:
    """Z25: a follower ignores a leader that it does not know to be alive, and nobody repeats that."""
    cluster = ZooKeeperCluster(1, 2, 3, 4, era=era)
    cluster.create_topic(2, 3, 4)
    cluster.crash(2)
    assert cluster.shown().startswith("leader=3 isr=3,4 ")
    without_2 = next(
        request
        for request in reversed(cluster[4].told)
        if isinstance(request, control_messages.UpdateMetadataRequest)
        and broker(2) not in {each.broker_id for each in request.live_brokers}
    )
    cluster.start(2)
    cluster.advance(1_000)
    assert "isr=3,4,2 " in cluster.shown()
    cluster.tell_again(4, without_2)
    cluster.ask(PREFERRED)
    assert cluster.shown().startswith("leader=2 ")
    assert cluster[4].partition.leader == broker(3)
    _, answer = cluster.produce(2)
    cluster.advance(1_000)
    assert not cluster.is_acked(answer)
    cluster.advance(2 * LAG_MS)
    if era == "kip-550-zk":
        # LeaderAndIsr follows each change of the ISR (KIP-497), and equal leader epochs are taken (KIP-704).
        assert cluster[4].partition.leader == broker(2)
    else:
        assert "leader=2 isr=3,2 " in cluster.shown()
        cluster.expire(3)  # the next leader epoch
        cluster.advance(2_000)
        assert cluster[4].partition.leader == broker(2)
    assert {2, 3, 4} == {int(number) for number in cluster.shown().split("isr=")[1].split()[0].split(",")}


@pytest.mark.parametrize("era", ALL_ERAS)
def test_nobody_leads_before_it_knows_the_min_isr_of_the_topic(era: str) -> None:
    """A role waits for the topic's configuration, and later requests wait with it, in order."""
    cluster = ZooKeeperCluster(1, 2, 3, era=era, min_insync_replicas=1)
    cluster.crash(3)
    cluster.hold_zookeeper(2, after=0)
    cluster.create_topic(2, 3, config={"min.insync.replicas": "2"})
    assert cluster.shown().startswith("leader=2 isr=2 ")
    _, early = cluster.produce(2)
    assert not cluster.is_acked(early)
    cluster.tell_again(2, cluster[2].told[-1])
    cluster.release_zookeeper(2)
    assert cluster[2].partition.is_leader
    _, alone = cluster.produce(2)
    assert cluster.produced[alone].partitions[0].error.name == "NOT_ENOUGH_REPLICAS"
    cluster.start(3)
    cluster.advance(1_000)
    acked(cluster, 2)
