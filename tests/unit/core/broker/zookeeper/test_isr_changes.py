"""ISR changes that a leader writes itself, one at a time (Kafka's ``ReplicaManager.maybeShrinkIsr`` below KIP-497)."""

import pytest

from laststand.emulator.core import messages
from laststand.emulator.core.broker.replicas.isr import Committed, IsrProposal, PendingShrink
from laststand.emulator.core.broker.replicas.isr_changes import maybe_shrink_isr
from laststand.emulator.core.broker.replicas.partition import Partition
from laststand.emulator.core.broker.zookeeper.isr import LeaderIsrWrites
from laststand.emulator.core.broker.zookeeper.isr_changes import IsrWritten, ZooKeeperIsrChanges
from laststand.emulator.core.broker.zookeeper.isr_notifier import LOOK_INTERVAL_MS
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import BrokerEpoch, TopicPartition
from laststand.emulator.core.zookeeper.identifiers import ControllerEpoch, NodeVersion
from laststand.emulator.core.zookeeper.rules import ZOOKEEPER_ERAS
from tests.unit.core.broker.hosting import FIRST, LAG_MS, NAME, OWN, SECOND, Hosting
from tests.unit.core.broker.zookeeper.test_control_requests import Front

ERA = ZOOKEEPER_ERAS["kafka-2.6-zk"]
OTHER = TopicPartition("orders", 1)


class Leader:
    """A leader of two partitions whose follower lags in both."""

    def __init__(self, era_name: str = "kafka-2.6-zk") -> None:
        self.hosting = Hosting()
        era, front = ZOOKEEPER_ERAS[era_name], Front(era_name)
        self.fence = front.fence
        self.fence.broker_epoch = BrokerEpoch(7)
        self.changes = ZooKeeperIsrChanges(
            self.hosting.config,
            era.rules,
            era.rules.protocol(era.ibp),
            hosted=self.hosting.hosted,
            control=front.requests,
            fence=self.fence,
        )
        self.changes.controller_to_ask(SECOND)
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
        self.changes.handle_written(turn, IsrWritten(proposal, None if version is None else NodeVersion(version)))
        return [each.partition for each in turn.proposals]

    def asked(self) -> messages.AlterPartitionRequest | None:
        """Returns what leaves for the controller now."""
        return self.changes.next_request(self.hosting.turn())

    def acknowledge(self, request: messages.AlterPartitionRequest) -> None:
        """The controller answers on receipt: the change was taken, and is not made yet (KIP-497)."""
        taken = tuple(
            messages.AlterPartitionResult(
                topic=data.topic, topic_id=data.topic_id, partition=data.partition, error=ErrorCode.NONE
            )
            for data in request.partitions
        )
        response = messages.AlterPartitionResponse(error=ErrorCode.NONE, partitions=taken)
        self.changes.handle_reply(self.hosting.turn(), request, response)

    def hear_as_before(self, *, later_terms: int) -> None:
        """LeaderAndIsr says what the leader of the first partition knows."""
        self.fence.controller_epoch = ControllerEpoch(self.fence.controller_epoch + later_terms)
        self.changes.ask_successor(self.hosting.turn(), self.first)


@pytest.mark.parametrize(("later_terms", "is_asked_again"), [(1, True), (0, False)])
def test_a_change_that_was_acknowledged_and_never_made_is_asked_of_the_next_controller(
    later_terms: int, *, is_asked_again: bool
) -> None:
    leader = Leader("kip-550-zk")
    proposal = leader.shrink(leader.first)
    request = leader.asked()
    assert request is not None
    leader.acknowledge(request)
    assert leader.first.isr_state is proposal.state, "the larger ISR counts until LeaderAndIsr settles it"
    assert leader.asked() is None
    leader.hear_as_before(later_terms=later_terms)
    assert leader.asked() == (request if is_asked_again else None)
    assert leader.first.isr_state is proposal.state


def test_a_change_that_is_under_way_is_not_asked_twice() -> None:
    leader = Leader("kip-550-zk")
    leader.shrink(leader.first)
    assert leader.asked() is not None
    leader.hear_as_before(later_terms=1)
    assert leader.asked() is None


def test_a_change_that_is_settled_is_not_asked_again() -> None:
    leader = Leader("kip-550-zk")
    leader.shrink(leader.first)
    request = leader.asked()
    assert request is not None
    leader.acknowledge(request)
    leader.hosting.lead(OWN, partition_epoch=2)
    leader.hear_as_before(later_terms=1)
    assert leader.asked() is None


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
