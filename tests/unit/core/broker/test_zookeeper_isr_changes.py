"""ISR changes that a leader writes itself, one at a time (Kafka's ``ReplicaManager.maybeShrinkIsr`` below KIP-497)."""

from emulator.core.broker.isr import Committed, IsrProposal, PendingShrink
from emulator.core.broker.isr_changes import maybe_shrink_isr
from emulator.core.broker.isr_notifier import LOOK_INTERVAL_MS
from emulator.core.broker.partition import Partition
from emulator.core.broker.zookeeper_isr import LeaderIsrWrites
from emulator.core.broker.zookeeper_isr_changes import IsrWritten, ZooKeeperIsrChanges
from emulator.core.types import TopicPartition
from emulator.core.zookeeper.identifiers import NodeVersion
from emulator.core.zookeeper_rules import ZOOKEEPER_ERAS
from tests.unit.core.broker.hosting import FIRST, LAG_MS, NAME, OWN, Hosting
from tests.unit.core.broker.test_control_requests import Front

ERA = ZOOKEEPER_ERAS["kafka-2.6-zk"]
OTHER = TopicPartition("orders", 1)


class Leader:
    """A leader of two partitions whose follower lags in both."""

    def __init__(self) -> None:
        self.hosting = Hosting()
        front = Front("kafka-2.6-zk")
        self.changes = ZooKeeperIsrChanges(
            self.hosting.config,
            ERA.rules,
            ERA.rules.protocol(ERA.ibp),
            hosted=self.hosting.hosted,
            control=front.requests,
            fence=front.fence,
        )
        self.first, self.second = self.hosting.partition, self.hosting.another(OTHER)
        self.hosting.hosted.add(self.second)
        self.hosting.lead(OWN, FIRST)
        state = self.hosting.state(leader=OWN, isr=(OWN, FIRST), leader_epoch=1, partition_epoch=1)
        self.second.become_leader(self.hosting.turn(), state)
        self.hosting.now_ms += LAG_MS + 1

    def shrink(self, partition: Partition) -> IsrProposal:
        turn = self.hosting.turn()
        maybe_shrink_isr(turn, partition)
        (proposal,) = turn.proposals
        self.changes.submit(turn, proposal)
        return proposal

    def hear(self, proposal: IsrProposal, version: int | None) -> list[TopicPartition]:
        turn = self.hosting.turn()
        self.changes.take_written(turn, IsrWritten(proposal, None if version is None else NodeVersion(version)))
        return [each.partition for each in turn.proposals]


def test_one_change_is_written_at_a_time_and_another_is_taken_back() -> None:
    leader = Leader()
    leader.shrink(leader.first)
    leader.shrink(leader.second)
    assert len(leader.changes.programs) == 1
    assert leader.changes.is_locked(NAME)
    assert isinstance(leader.first.isr_state, PendingShrink)
    assert not leader.changes.is_locked(OTHER)
    assert leader.second.isr_state == Committed((OWN, FIRST))


def test_after_a_shrink_the_others_are_looked_at() -> None:
    leader = Leader()
    proposal = leader.shrink(leader.first)
    assert leader.hear(proposal, 2) == [OTHER]
    assert leader.first.isr_state == Committed((OWN,))


def test_a_shrink_that_was_refused_waits_for_the_next_look_and_the_others_do_not() -> None:
    leader = Leader()
    proposal = leader.shrink(leader.first)
    assert leader.hear(proposal, None) == [OTHER]
    assert leader.first.isr_state == Committed((OWN, FIRST))


def test_a_session_that_ends_takes_its_writes_along() -> None:
    leader = Leader()
    leader.shrink(leader.first)
    leader.changes.give_up(leader.hosting.turn())
    assert leader.changes.programs == []
    assert not leader.changes.is_locked(NAME)
    assert leader.first.isr_state == Committed((OWN, FIRST))


def test_to_unlock_what_is_not_locked_changes_nothing() -> None:
    writes = LeaderIsrWrites(ERA.rules)
    writes.forget(NAME)
    assert not writes.is_any_under_way


def test_the_first_look_for_what_to_notify_is_an_interval_after_the_start() -> None:
    leader = Leader()
    turn = leader.hosting.turn()
    leader.changes.start(turn)
    assert leader.changes.timers.earliest_ms == turn.now_ms + LOOK_INTERVAL_MS
