"""Stories of KIP-497, KIP-550 and KIP-704 where they were written for, played by whole processes in each era."""

import msgspec
import pytest

from laststand.emulator.core import admin_messages
from laststand.emulator.core.broker.replicas.isr import PendingShrink
from laststand.emulator.core.disk import ExactLoss, Keep, NamesFate, TruncationFate
from laststand.emulator.core.zookeeper import control_messages, operations
from laststand.emulator.core.zookeeper.nodes import paths
from laststand.emulator.core.zookeeper.nodes.small_nodes import encode_config
from laststand.emulator.core.zookeeper.rules import ZOOKEEPER_ERAS
from tests.simulation.zookeeper_cluster import LAG_MS, ORDERS, ZooKeeperCluster, broker

WRITING_ERAS = ("kafka-2.5-zk", "kafka-2.6-zk")
ASKING_ERAS = ("kafka-3.1-zk", "kafka-3.2-zk", "kafka-3.9-zk", "kip-550-zk")
ALL_ERAS = (*WRITING_ERAS, *ASKING_ERAS)


def acked(cluster: ZooKeeperCluster, number: int) -> int:
    """Produces a record that is acknowledged by all."""
    record, answer = cluster.produce(number)
    cluster.advance(1_000)
    assert cluster.is_acked(answer)
    return record


# --- What every era does ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("era", ALL_ERAS)
def test_what_is_acknowledged_survives_the_leader(era: str) -> None:
    cluster = ZooKeeperCluster(1, 2, 3, era=era)
    cluster.create_topic(2, 3, 1)
    record = acked(cluster, 2)
    cluster.crash(2)
    assert cluster.shown() == "leader=3 isr=3,1 LE=1 PE=1"
    assert cluster[3].records() == [record]
    acked(cluster, 3)
    cluster.start(2)
    cluster.advance(1_000)
    assert cluster.shown() == "leader=3 isr=3,1,2 LE=1 PE=2"
    assert cluster[2].records() == cluster[3].records()


@pytest.mark.parametrize("era", ALL_ERAS)
def test_a_follower_that_lags_leaves_the_isr_and_comes_back(era: str) -> None:
    cluster = ZooKeeperCluster(1, 2, 3, era=era)
    cluster.create_topic(2, 3, 1)
    cluster.cut_link(3, 2)
    cluster.produce(2)
    cluster.advance(2 * LAG_MS)
    assert cluster.shown() == "leader=2 isr=2,1 LE=0 PE=1"
    acked(cluster, 2)
    cluster.cut.clear()
    cluster.advance(2_000)
    assert cluster.shown() == "leader=2 isr=2,1,3 LE=0 PE=2"


@pytest.mark.parametrize("era", ALL_ERAS)
def test_an_orderly_stop_moves_the_leadership_first(era: str) -> None:
    cluster = ZooKeeperCluster(1, 2, 3, era=era)
    cluster.create_topic(2, 3, 1)
    acked(cluster, 2)
    cluster.stop(2)
    assert cluster[2].is_down
    assert cluster[2].disk.is_clean
    assert cluster.shown() == "leader=3 isr=3,1 LE=1 PE=1"


@pytest.mark.parametrize("era", ALL_ERAS)
def test_a_leader_without_zookeeper_acknowledges_nothing_once_it_is_deposed(era: str) -> None:
    cluster = ZooKeeperCluster(1, 2, 3, era=era)
    cluster.create_topic(2, 3, 1)
    kept = acked(cluster, 2)
    cluster.cut_from_zookeeper(2)
    # Nobody fences it: it leads, in its own eyes, until somebody tells it otherwise.
    cluster.cut_link(1, 2)
    cluster.expire(2)
    assert cluster.shown() == "leader=3 isr=3,1 LE=1 PE=1"
    assert cluster[2].partition.is_leader
    lost, answer = cluster.produce(2)
    cluster.advance(2_000)
    assert not cluster.is_acked(answer)
    cluster.cut.clear()
    cluster.heal_zookeeper(2)
    cluster.advance(500)
    assert not cluster[2].partition.is_leader
    assert cluster[2].records() == cluster[3].records() == [kept]
    assert lost not in cluster[2].records()


@pytest.mark.parametrize("era", ALL_ERAS)
def test_the_last_replica_standing_leads_whatever_it_holds(era: str) -> None:
    cluster = ZooKeeperCluster(1, 2, 3, era=era, min_insync_replicas=1)
    cluster.create_topic(2, 3)
    cluster.crash(3)
    record = acked(cluster, 2)
    cluster.crash(2)
    assert cluster.shown() == "leader=- isr=2 LE=2 PE=2"
    cluster[2].disk.lose_power(Keep.NONE, ExactLoss(kept=0, truncation=TruncationFate.KEPT, names=NamesFate.KEPT))
    cluster.start(3)
    cluster.start(2)
    cluster.advance(1_000)
    assert cluster.shown().startswith("leader=2")
    assert record not in cluster[2].records() + cluster[3].records()


def test_producer_ids_come_from_zookeeper_and_no_two_brokers_give_the_same() -> None:
    cluster = ZooKeeperCluster(1, 2)
    assert [cluster.init_producer_id(number) for number in (1, 1, 2)] == [0, 1, 1000]


# --- KIP-497 ------------------------------------------------------------------------------------------------------


def shown_isr(cluster: ZooKeeperCluster, number: int) -> tuple[int, ...]:
    """Returns the ISR that a broker tells clients of."""
    return cluster[number].process.broker.cache.image.partitions[ORDERS].isr


def _shrink(era: str) -> ZooKeeperCluster:
    cluster = ZooKeeperCluster(1, 2, 3, era=era)
    cluster.create_topic(2, 3, 1)
    cluster.cut_link(3, 2)
    cluster.produce(2)
    for _ in range(3 * LAG_MS // 100):
        if "isr=2,1 " in cluster.shown():
            return cluster
        cluster.advance(100)
    raise AssertionError(cluster.shown())


@pytest.mark.parametrize("era", WRITING_ERAS)
def test_clients_hear_late_of_an_isr_that_its_leader_wrote(era: str) -> None:
    cluster = _shrink(era)
    assert shown_isr(cluster, 1) == (2, 3, 1)
    cluster.advance(4_000)
    assert shown_isr(cluster, 1) == (2, 3, 1)
    cluster.advance(6_000)
    assert shown_isr(cluster, 1) == (2, 1)
    assert cluster.server.children(paths.ISR_CHANGE_NOTIFICATIONS) == ()


@pytest.mark.parametrize("era", ASKING_ERAS)
def test_clients_hear_at_once_of_an_isr_that_the_controller_wrote(era: str) -> None:
    cluster = _shrink(era)
    assert shown_isr(cluster, 1) == (2, 1)


@pytest.mark.parametrize("era", WRITING_ERAS)
def test_a_partition_stands_still_while_its_leader_writes_its_isr(era: str) -> None:
    cluster = ZooKeeperCluster(1, 2, 3, era=era, min_insync_replicas=1)
    cluster.create_topic(2, 3, 1)
    cluster.cut_link(3, 2)
    cluster.produce(2)
    cluster.cut_from_zookeeper(2)
    cluster.advance(2 * LAG_MS)
    _, answer = cluster.produce(2, acks=1)
    assert answer not in cluster.produced
    cluster.heal_zookeeper(2)
    assert cluster.is_acked(answer)
    assert cluster.shown() == "leader=2 isr=2,1 LE=0 PE=1"


@pytest.mark.parametrize("era", ASKING_ERAS)
def test_a_leader_that_asks_serves_on_while_zookeeper_is_silent(era: str) -> None:
    cluster = ZooKeeperCluster(1, 2, 3, era=era, min_insync_replicas=1)
    cluster.create_topic(2, 3, 1)
    cluster.cut_link(3, 2)
    cluster.produce(2)
    cluster.cut_from_zookeeper(1)
    cluster.cut_from_zookeeper(2)
    cluster.advance(2 * LAG_MS)
    _, answer = cluster.produce(2, acks=1)
    assert cluster.is_acked(answer)
    assert cluster.shown() == "leader=2 isr=2,3,1 LE=0 PE=0"
    cluster.heal_zookeeper(2)
    cluster.heal_zookeeper(1)
    cluster.advance(1_000)
    assert cluster.shown() == "leader=2 isr=2,1 LE=0 PE=1"


@pytest.mark.parametrize("era", ALL_ERAS)
def test_a_leader_that_missed_an_election_changes_no_isr(era: str) -> None:
    cluster = ZooKeeperCluster(1, 2, 3, 4, era=era)
    cluster.create_topic(2, 3, 4)
    cluster.cut_link(1, 2)
    cluster.crash(4)  # the leader is not told that 4 left the ISR, so it knows an old version
    assert cluster.shown() == "leader=2 isr=2,3 LE=1 PE=1"
    _, answer = cluster.produce(2)
    cluster.advance(2 * LAG_MS)
    assert not cluster.is_acked(answer)
    assert cluster.shown() == "leader=2 isr=2,3 LE=1 PE=1"
    assert isinstance(cluster[2].partition.isr_state, PendingShrink) is (era in ASKING_ERAS)
    cluster.cut.clear()
    cluster.advance(1_000)
    assert cluster.is_acked(answer)


@pytest.mark.parametrize("era", ["kafka-3.1-zk", "kafka-3.2-zk", "kafka-3.9-zk"])
def test_the_same_change_sent_to_the_successor_succeeds(era: str) -> None:
    cluster = ZooKeeperCluster(1, 2, 3, 4, era=era)
    cluster.create_topic(2, 3, 4)
    cluster.answers_lost_of.add(broker(1))
    cluster.cut_link(4, 2)
    cluster.produce(2)
    cluster.advance(2 * LAG_MS)
    assert cluster.shown() == "leader=2 isr=2,3 LE=0 PE=1"
    assert cluster[2].partition.partition_epoch == 0
    cluster.crash(1)
    cluster.advance(1_000)
    assert cluster.controller() != broker(1)
    assert cluster.shown() == "leader=2 isr=2,3 LE=0 PE=1"
    assert cluster[2].partition.partition_epoch == 1
    assert cluster[2].partition.committed_isr == (broker(2), broker(3))


@pytest.mark.parametrize("era", ["kafka-2.5-zk", "kafka-2.6-zk", "kafka-3.1-zk", "kafka-3.9-zk"])
def test_a_member_that_the_leader_does_not_know_it_added(era: str) -> None:
    """The maximal ISR is for this case, the only one where a leader's own writes lose what was acknowledged."""
    cluster = ZooKeeperCluster(2, 0, 1, era=era, min_insync_replicas=1)
    cluster.create_topic(1, 0)
    cluster.crash(1)
    cluster.cut_link(1, 0)
    cluster.start(1)
    assert "leader=0 isr=0 " in cluster.shown()
    cluster.lose_answers_of_zookeeper(0)
    cluster.answers_lost_of.add(broker(2))
    cluster.cut.clear()
    cluster.advance(2_000)
    assert "leader=0 isr=0,1 " in cluster.shown()
    cluster.cut_link(2, 0)
    cluster.cut_link(1, 0)
    cluster.ask(admin_messages.ElectLeadersRequest(election_type=0, partitions=None))
    assert "leader=1 isr=0,1 " in cluster.shown()
    cluster.heal_zookeeper(0)
    cluster.advance(2 * LAG_MS)
    record, answer = cluster.produce(0)
    cluster.advance(1_000)
    was_acked = cluster.is_acked(answer)
    cluster.answers_lost_of.clear()
    cluster.cut.clear()
    cluster.advance(2 * LAG_MS)
    assert record not in cluster[1].records() + cluster[0].records()
    assert was_acked is (era in WRITING_ERAS)


def test_a_topics_own_min_isr_counts() -> None:
    cluster = ZooKeeperCluster(1, 2, 3, min_insync_replicas=1)
    cluster.create_topic(2, 3, config={"min.insync.replicas": "2"})
    cluster.crash(3)
    _, answer = cluster.produce(2)
    assert not cluster.is_acked(answer)
    assert cluster.produced[answer].partitions[0].error.name == "NOT_ENOUGH_REPLICAS"
    data = encode_config({"min.insync.replicas": "1"})
    cluster.write(operations.SetData(path=paths.topic_config_node(ORDERS.topic), data=data, version=None))
    acked(cluster, 2)


def test_the_min_isr_of_a_topic_that_was_made_again_counts() -> None:
    cluster = ZooKeeperCluster(1, 2, 3, min_insync_replicas=1)
    cluster.create_topic(2, 3, config={"min.insync.replicas": "1"})
    acked(cluster, 2)
    cluster.delete_topic()
    assert cluster.server.children(paths.TOPICS) == ()
    cluster.create_topic(2, 3, config={"min.insync.replicas": "2"})
    cluster.crash(3)
    _, answer = cluster.produce(2)
    assert not cluster.is_acked(answer)
    assert cluster.produced[answer].partitions[0].error.name == "NOT_ENOUGH_REPLICAS"


# --- KIP-550 ------------------------------------------------------------------------------------------------------


def _stray(era: str) -> ZooKeeperCluster:
    """Moves a partition off a broker that is down, and starts it."""
    cluster = ZooKeeperCluster(1, 2, 3, era=era)
    cluster.create_topic(2, 3, 1)
    acked(cluster, 2)
    cluster.crash(3)
    cluster.reassign(2, 1)
    assert cluster.replicas() == (broker(2), broker(1))
    cluster.start(3)
    cluster.advance(500)
    return cluster


@pytest.mark.parametrize("era", ALL_ERAS)
def test_a_replica_that_was_moved_away_while_its_broker_was_down(era: str) -> None:
    cluster = _stray(era)
    assert (ORDERS in cluster[3].disk.logs) is (era != "kip-550-zk")
    assert bool(cluster[3].disk.strays) is (era == "kip-550-zk")
    cluster.advance(1_000)
    assert cluster[3].disk.strays == {}


@pytest.mark.parametrize("era", ALL_ERAS)
def test_a_topic_that_is_made_again_over_a_stray(era: str) -> None:
    cluster = _stray(era)
    (old,) = cluster[3].records() or [0]
    cluster.delete_topic()
    assert cluster.server.children(paths.TOPICS) == ()
    cluster.create_topic(3, 1, 2)
    cluster.advance(1_000)
    match era:
        case "kafka-2.5-zk" | "kafka-2.6-zk":
            # KIP-550, problem 3: the new topic begins with the old one's records.
            assert cluster[3].records() == cluster[1].records() == [old]
        case "kip-550-zk":
            assert cluster[3].partition.is_leader
            assert cluster[3].records() == []
        case _:
            # INCONSISTENT_TOPIC_ID: the one that should lead stays out.
            assert cluster[3].process.broker.partition(ORDERS) is None
            assert cluster[3].records() == [old]


@pytest.mark.parametrize("era", ALL_ERAS)
def test_a_reassignment_that_is_cancelled_before_the_new_replica_is_in_sync(era: str) -> None:
    cluster = ZooKeeperCluster(1, 2, 3, 4, era=era)
    cluster.create_topic(2, 3)
    cluster.cut_link(4, 2)
    cluster.reassign(2, 4)
    assert ORDERS in cluster[4].disk.logs
    partition = admin_messages.ReassignablePartition(topic=ORDERS.topic, partition=ORDERS.partition, replicas=None)
    cluster.ask(admin_messages.AlterPartitionReassignmentsRequest(partitions=(partition,)))
    assert cluster.replicas() == (broker(2), broker(3))
    # KAFKA-13972: it is told with the leader epoch that it has, which 2.5 does not look at.
    assert (ORDERS in cluster[4].disk.logs) is (era in ("kafka-2.6-zk", "kafka-3.1-zk", "kafka-3.2-zk"))


@pytest.mark.parametrize("is_checked", [True, False])
def test_a_complete_list_that_was_meant_for_a_former_life(*, is_checked: bool) -> None:
    era = ZOOKEEPER_ERAS["kip-550-zk"]
    rules = msgspec.structs.replace(era.rules, control_broker_epoch_check=is_checked)
    cluster = ZooKeeperCluster(1, 2, 3, variant=msgspec.structs.replace(era, rules=rules))
    (old,) = [
        request
        for request in cluster[3].told
        if isinstance(request, control_messages.LeaderAndIsrRequest) and request.contains_all_replicas
    ]
    assert old.partitions == ()
    cluster.create_topic(3, 2, 1)
    acked(cluster, 3)
    cluster.expire(3)  # it comes back at once, under another epoch
    cluster.tell_again(3, old)
    assert (ORDERS in cluster[3].disk.logs) is is_checked


@pytest.mark.parametrize("era", ALL_ERAS)
def test_a_late_copy_of_a_deletion(era: str) -> None:
    cluster = ZooKeeperCluster(1, 2, 3, era=era)
    cluster.create_topic(2, 3)
    acked(cluster, 2)
    cluster.reassign(2)
    deletions = [
        request
        for request in cluster[3].told
        if isinstance(request, control_messages.StopReplicaRequest)
        and any(replica.is_deleted for replica in request.partitions)
    ]
    assert len(deletions) == 1
    assert ORDERS not in cluster[3].disk.logs
    cluster.reassign(2, 3)
    cluster.advance(2_000)
    assert "isr=2,3" in cluster.shown()
    cluster.tell_again(3, deletions[0])
    # KIP-570 came with 2.6.
    assert (ORDERS in cluster[3].disk.logs) is (era != "kafka-2.5-zk")


# --- KIP-704 ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("era", ["kafka-3.1-zk", "kafka-3.2-zk", "kafka-3.9-zk", "kip-550-zk"])
def test_an_unclean_election_of_an_idle_partition(era: str) -> None:
    cluster = ZooKeeperCluster(1, 2, 3, era=era, min_insync_replicas=1)
    cluster.create_topic(2, 3)
    cluster.crash(3)
    cluster.crash(2)
    cluster.start(3)
    cluster.ask(admin_messages.ElectLeadersRequest(election_type=1, partitions=None))
    cluster.advance(5_000)
    assert cluster.shown().startswith("leader=3 isr=3 ")
    data = cluster.server.data(paths.state_node(ORDERS))
    assert data is not None
    # Released Kafka remembers it, recovers nothing, and says so only with the next ISR change.
    assert (b"leader_recovery_state" in data) is (era in ("kafka-3.2-zk", "kafka-3.9-zk"))
    acked(cluster, 3)


def test_the_mark_survives_a_change_of_the_controller() -> None:
    cluster = ZooKeeperCluster(1, 2, 3, 4, min_insync_replicas=1)
    cluster.create_topic(2, 3)
    cluster.crash(3)
    cluster.crash(2)
    cluster.start(3)
    cluster.ask(admin_messages.ElectLeadersRequest(election_type=1, partitions=None))
    cluster.write(operations.Delete(path=paths.CONTROLLER, version=None))
    data = cluster.server.data(paths.state_node(ORDERS))
    assert data is not None
    assert b"leader_recovery_state" in data


# --- Broker life --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("era", ALL_ERAS)
def test_a_broker_that_came_back_between_two_looks_gets_its_roles(era: str) -> None:
    cluster = ZooKeeperCluster(1, 2, 3, era=era)
    cluster.create_topic(2, 3, 1)
    record = acked(cluster, 2)
    cluster[1].is_paused = True  # the controller sees neither the end nor the beginning
    cluster.crash(3)
    cluster.start(3)
    assert cluster[3].process.broker.partition(ORDERS) is None
    cluster[1].is_paused = False
    cluster.settle()
    cluster.advance(1_000)
    assert cluster.shown() == "leader=2 isr=2,1,3 LE=1 PE=2"
    assert cluster[3].records() == [record]


def test_a_killed_broker_waits_for_the_end_of_its_old_session() -> None:
    cluster = ZooKeeperCluster(1, 2)
    cluster.kill(2)
    old = cluster[2].session_id
    cluster.start(2)
    assert cluster[2].is_down  # its id is taken
    assert old is not None
    cluster.server.end_session(old)
    cluster.start(2)
    assert not cluster[2].is_down


def test_a_broker_that_nobody_lets_go_goes_after_three_times() -> None:
    cluster = ZooKeeperCluster(1, 2)
    cluster.create_topic(2)
    cluster.cut_link(2, 1)
    cluster.stop(2)
    cluster.advance(10_000)
    assert not cluster[2].is_down
    cluster.advance(6_000)
    assert cluster[2].is_down
    assert cluster[2].disk.is_clean
