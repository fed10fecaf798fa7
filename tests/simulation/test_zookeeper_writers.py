"""Stories of two who write one state node, or believe that they may: leaders, controllers, controllers of before."""

import msgspec
import pytest

from laststand.emulator.core import admin_messages
from laststand.emulator.core.zookeeper.rules import ZOOKEEPER_ERAS
from tests.simulation.test_zookeeper_stories import ALL_ERAS, ASKING_ERAS, WRITING_ERAS, acked
from tests.simulation.zookeeper_cluster import LAG_MS, ZooKeeperCluster, broker

PREFERRED = admin_messages.ElectLeadersRequest(
    election_type=admin_messages.RequestedElection.PREFERRED, partitions=None
)


def _led_by_another(era: str = "kafka-3.9-zk", **options: object) -> ZooKeeperCluster:
    """Returns a cluster in which 3 leads, and 2 is in sync and preferred; 1 is the controller."""
    variant = msgspec.structs.replace(
        ZOOKEEPER_ERAS[era], rules=msgspec.structs.replace(ZOOKEEPER_ERAS[era].rules, **options)
    )
    cluster = ZooKeeperCluster(1, 2, 3, 4, variant=variant, auto_leader_rebalance_enable=False)
    cluster.create_topic(2, 3, 4)
    cluster.expire(2)
    cluster.advance(1_000)
    assert cluster.shown() == "leader=3 isr=3,4,2 LE=1 PE=2"
    return cluster


def _let_lag(cluster: ZooKeeperCluster) -> None:
    """Lets 4 fall behind, so that its leader wants to do without it."""
    cluster.cut_link(4, 3)
    cluster.produce(3)
    cluster.advance(2 * LAG_MS)


# --- Z02: an election and the leader's own shrink ----------------------------------------------------------------


@pytest.mark.parametrize("era", WRITING_ERAS)
def test_an_election_comes_before_the_write_of_the_leader(era: str) -> None:
    cluster = _led_by_another(era)
    cluster.hold_zookeeper(3, after=0)
    _let_lag(cluster)
    cluster.ask(PREFERRED)
    assert cluster.shown() == "leader=2 isr=3,4,2 LE=2 PE=3"
    cluster.release_zookeeper(3)
    assert cluster.shown() == "leader=2 isr=3,4,2 LE=2 PE=3"
    cluster.cut.clear()
    cluster.advance(2 * LAG_MS)
    acked(cluster, 2)
    assert cluster[2].records() == cluster[3].records() == cluster[4].records()


@pytest.mark.parametrize("era", WRITING_ERAS)
def test_the_write_of_the_leader_comes_before_an_election(era: str) -> None:
    cluster = _led_by_another(era)
    cluster.hold_zookeeper(1, after=1)
    cluster.ask(PREFERRED)  # the controller has read the node
    _let_lag(cluster)
    assert cluster.shown() == "leader=3 isr=3,2 LE=1 PE=3"
    cluster.cut_link(4, 2)
    cluster.release_zookeeper(1)
    # Its write is refused; it reads again, and elects with the ISR that the leader wrote.
    assert cluster.shown() == "leader=2 isr=3,2 LE=2 PE=4"
    cluster.cut.clear()
    acked(cluster, 2)


@pytest.mark.parametrize("era", ASKING_ERAS)
def test_only_the_controller_writes_where_leaders_ask(era: str) -> None:
    cluster = _led_by_another(era)
    cluster.cut_link(1, 3)
    cluster.ask(PREFERRED)
    assert cluster.shown() == "leader=2 isr=3,4,2 LE=2 PE=3"
    _let_lag(cluster)  # the former leader asks for less, and is fenced by its leader epoch
    assert cluster.shown().startswith("leader=2 ")
    assert " LE=2 " in cluster.shown()
    cluster.cut.clear()
    cluster.advance(2 * LAG_MS)
    acked(cluster, 2)
    assert cluster.shown().startswith("leader=2 ")


# --- Z08: a controller of before --------------------------------------------------------------------------------


@pytest.mark.parametrize("era", ALL_ERAS)
@pytest.mark.parametrize("is_fenced", [True, False])
def test_a_controller_that_was_replaced_in_the_middle_of_an_election(era: str, *, is_fenced: bool) -> None:
    cluster = _led_by_another(era, controller_epoch_fence=is_fenced)
    before = cluster.shown()
    cluster.hold_zookeeper(1, after=1)
    cluster.ask(PREFERRED)  # it has read the node
    cluster.depose()
    successor = cluster.controller()
    assert successor != broker(1)
    cluster.release_zookeeper(1)
    assert cluster.controller() == successor
    if is_fenced:
        assert cluster.shown() == before
        cluster.ask(PREFERRED)
        acked(cluster, 2)
    else:
        # ZooKeeper has one leader, and all brokers, who know the successor's epoch, another.
        assert cluster.shown() == "leader=2 isr=3,4,2 LE=2 PE=3"
        assert cluster[3].partition.is_leader
        assert not cluster[2].partition.is_leader


# --- Z09: a leader that is ahead of the controller that it asks ----------------------------------------------------


@pytest.mark.parametrize("era", ASKING_ERAS)
def test_a_leader_that_is_ahead_of_a_controller_of_before(era: str) -> None:
    """KAFKA-14154. A leader goes on asking whom it asked before, until that one refuses."""
    cluster = _led_by_another(era)
    _let_lag(cluster)
    cluster.cut.clear()
    cluster.advance(1_000)
    assert cluster.shown() == "leader=3 isr=3,2,4 LE=1 PE=4"
    cluster[1].sees_watches = False  # it has not heard that it is the controller no more
    cluster.depose()
    assert cluster.controller() != broker(1)
    cluster.crash(2)
    assert cluster.shown() == "leader=3 isr=3,4 LE=2 PE=5"
    _let_lag(cluster)
    if era in ("kafka-3.1-zk", "kafka-3.2-zk"):
        # It tries to write what the leader wants, and is fenced there, time and again.
        assert cluster.shown() == "leader=3 isr=3,4 LE=2 PE=5"
        cluster[1].sees_watches = True
        cluster.advance(1_000)
    assert cluster.shown() == "leader=3 isr=3 LE=2 PE=6"


# --- Z21: a controller that does not know what it wrote --------------------------------------------------------------


@pytest.mark.parametrize("era", ASKING_ERAS)
def test_a_controller_that_repeats_a_write_whose_answer_was_lost(era: str) -> None:
    cluster = _led_by_another(era)
    cluster.lose_answers_of_zookeeper(1)
    _let_lag(cluster)
    assert cluster.shown() == "leader=3 isr=3,2 LE=1 PE=3"
    cluster.heal_zookeeper(1)  # it repeats the write, and the version is another one
    cluster.cut.clear()
    cluster.advance(2 * LAG_MS)
    if era == "kip-550-zk":
        # KIP-497: LeaderAndIsr follows, after a write that was refused, too.
        assert cluster.shown() == "leader=3 isr=3,2,4 LE=1 PE=4"
        return
    assert cluster.shown() == "leader=3 isr=3,2 LE=1 PE=3"
    assert cluster[3].partition.partition_epoch == 2
    acked(cluster, 3)  # it counts on the larger ISR, whose members all fetch
    cluster.ask(PREFERRED)
    cluster.advance(2_000)
    assert cluster.shown() == "leader=2 isr=3,2,4 LE=2 PE=5"
