"""Delayed fetches (Kafka's ``DelayedFetch``): which wait, what ends their wait, and how much an answer holds."""

import pytest

from laststand.emulator.core import effects, messages
from laststand.emulator.core.broker.replicas import delayed_fetch
from laststand.emulator.core.broker.replicas.delayed_fetch import LINGER_MS, RELEASE_AGAIN_MS, FetchHandler
from laststand.emulator.core.broker.replicas.delayed_produce import ProduceHandler
from laststand.emulator.core.broker.replicas.fetch import Reader, find_readable
from laststand.emulator.core.broker.replicas.hosted import HostedPartitions
from laststand.emulator.core.broker.replicas.partition import Partition
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.switches import Switches
from laststand.emulator.core.types import Acks, BrokerEpoch, BrokerId, Offset, RequestId, TopicPartition
from tests.unit.core.broker.hosting import FIRST, NAME, OWN, SECOND, Hosting, batch

OTHER, THIRD, MISSING = (TopicPartition("orders", number) for number in (1, 2, 9))
BATCH_BYTES = 100


class Waiting:
    """A broker that leads three partitions, and the fetches that wait there."""

    def __init__(self) -> None:
        self.hosting = Hosting()
        self.hosting.lead(OWN, FIRST, SECOND)
        self.produces = ProduceHandler(self.hosting.hosted, Switches())
        self.handler = FetchHandler(self.hosting.config, self.hosting.hosted, self.produces)
        self.requests = 0
        for name in (OTHER, THIRD):
            self._lead(name)

    def _lead(self, name: TopicPartition) -> None:
        partition = self.hosting.another(name)
        state = self.hosting.state(leader=OWN, isr=(OWN, FIRST, SECOND), leader_epoch=1, partition_epoch=1)
        partition.become_leader(self.hosting.turn(), state)
        self.hosting.hosted.add(partition)

    def append(self, name: TopicPartition = NAME) -> None:
        partition = self.hosting.hosted.get(name)
        assert partition is not None
        partition.append_as_leader(self.hosting.turn(), batch(partition.log.log_end_offset, partition.leader_epoch))

    def grow(self, name: TopicPartition = NAME) -> dict[RequestId, messages.FetchResponse]:
        """A batch arrives; returns the answers that it leads to."""
        self.append(name)
        turn = self.hosting.turn()
        self.handler.check_growth(turn, name)
        return answers_of(turn)

    def commit(self, high_watermark: int) -> dict[RequestId, messages.FetchResponse]:
        self.hosting.partition.log.high_watermark = Offset(high_watermark)
        turn = self.hosting.turn()
        self.handler.check_high_watermark(turn, NAME)
        return answers_of(turn)

    def ask(
        self,
        *names: TopicPartition,
        replica: BrokerId | None = FIRST,
        offset: int = 0,
        min_bytes: int = 1,
        max_bytes: int = 1000,
        max_wait_ms: int = 500,
        broker_epoch: BrokerEpoch | None = None,
        client_rack: str | None = None,
    ) -> dict[RequestId, messages.FetchResponse]:
        """Fetches; returns the answers that there are at once."""
        self.requests += 1
        request = messages.FetchRequest(
            partitions=tuple(
                messages.FetchPartition(
                    topic=name.topic,
                    topic_id=None,
                    partition=name.partition,
                    fetch_offset=Offset(offset),
                    log_start_offset=Offset(0),
                )
                for name in names
            ),
            replica_id=replica,
            replica_epoch=broker_epoch,
            min_bytes=min_bytes,
            max_bytes=max_bytes,
            max_wait_ms=max_wait_ms,
            client_rack=client_rack,
        )
        turn = self.hosting.turn()
        self.handler.handle_request(turn, RequestId(self.requests), request)
        return answers_of(turn)


def answers_of(turn: Turn) -> dict[RequestId, messages.FetchResponse]:
    answers: dict[RequestId, messages.FetchResponse] = {}
    for effect in turn.effects():
        if isinstance(effect, effects.SendResponse):
            assert isinstance(effect.response, messages.FetchResponse)
            answers[effect.request_id] = effect.response
    return answers


def parts(answers: dict[RequestId, messages.FetchResponse]) -> tuple[messages.FetchPartitionResponse, ...]:
    (answer,) = answers.values()
    return answer.partitions


def sizes(answers: dict[RequestId, messages.FetchResponse]) -> list[int]:
    return [0 if part.span is None else part.span.size for part in parts(answers)]


# --- How much an answer holds ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("max_bytes", "held"),
    [
        (1, [100, 0, 0]),  # KIP-74: the first batch is returned whatever its size
        (199, [100, 0, 0]),
        (200, [100, 100, 0]),
        (299, [100, 100, 0]),
        (300, [100, 100, 100]),
    ],
)
def test_the_partitions_of_an_answer_share_its_limit(max_bytes: int, held: list[int]) -> None:
    waiting = Waiting()
    for name in (NAME, OTHER, THIRD):
        waiting.append(name)
    assert sizes(waiting.ask(NAME, OTHER, THIRD, max_bytes=max_bytes)) == held


# --- Which wait -----------------------------------------------------------------------------------------------------


def test_a_fetch_waits_where_its_partitions_have_too_little_together() -> None:
    waiting = Waiting()
    for name in (NAME, OTHER):
        waiting.append(name)
    assert sizes(waiting.ask(NAME, OTHER, THIRD, min_bytes=2 * BATCH_BYTES)) == [100, 100, 0]
    assert waiting.ask(NAME, OTHER, THIRD, min_bytes=2 * BATCH_BYTES + 1) == {}


@pytest.mark.parametrize(("max_wait_ms", "waits"), [(0, False), (1, True)])
def test_a_fetch_that_allows_no_wait_is_answered_at_once(max_wait_ms: int, *, waits: bool) -> None:
    assert (Waiting().ask(NAME, max_wait_ms=max_wait_ms) == {}) is waits


def test_an_error_is_answered_at_once() -> None:
    waiting = Waiting()
    answer = parts(waiting.ask(NAME, MISSING, THIRD))
    assert [part.error for part in answer] == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NONE]
    (part,) = parts(waiting.ask(NAME, broker_epoch=BrokerEpoch(1)))
    assert part.error is not ErrorCode.NONE, "the follower is an earlier process"


def test_past_the_limit_the_oldest_fetch_is_answered_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delayed_fetch, "WAITING_MAX", 2)
    waiting = Waiting()
    assert [list(waiting.ask(NAME)) for _ in range(4)] == [[], [], [1], [2]]


# --- What ends the wait ---------------------------------------------------------------------------------------------


def test_growth_answers_the_followers_that_have_enough_and_leaves_the_others() -> None:
    waiting = Waiting()
    waiting.ask(NAME, replica=None)
    waiting.ask(NAME, min_bytes=BATCH_BYTES)
    waiting.ask(NAME, replica=SECOND, min_bytes=2 * BATCH_BYTES)
    assert list(waiting.grow()) == [2], "not the consumer, which sees nothing yet"
    assert list(waiting.grow()) == [3]


def test_growth_counts_over_the_partitions_of_a_fetch() -> None:
    waiting = Waiting()
    waiting.ask(NAME, OTHER, min_bytes=2 * BATCH_BYTES)
    assert waiting.grow(NAME) == {}
    assert list(waiting.grow(OTHER)) == [1]


def test_a_high_watermark_answers_the_consumers_that_have_enough() -> None:
    waiting = Waiting()
    waiting.append()
    waiting.append()
    waiting.ask(NAME, replica=None, min_bytes=2 * BATCH_BYTES)
    waiting.ask(NAME, replica=None)
    waiting.ask(NAME, offset=2)
    assert list(waiting.commit(1)) == [2]
    assert list(waiting.commit(2)) == [1]


def test_a_fetch_below_a_log_start_that_was_raised_is_answered() -> None:
    waiting = Waiting()
    waiting.append()
    waiting.append()
    waiting.ask(NAME, replica=None, min_bytes=1000)
    waiting.hosting.partition.log.raise_log_start(Offset(1))
    (part,) = parts(waiting.commit(1))
    assert part.error is ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_fetch_from_a_former_leader_is_answered() -> None:
    waiting = Waiting()
    waiting.ask(NAME)
    waiting.hosting.follow(FIRST, leader_epoch=2, partition_epoch=2)
    turn = waiting.hosting.turn()
    waiting.handler.check_role(turn, NAME)
    (part,) = parts(answers_of(turn))
    assert part.error is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_what_wakes_a_fetch_looks_at_its_other_partitions_once_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = Waiting()
    names = (NAME, OTHER, THIRD)
    waiting.ask(*names, min_bytes=2 * BATCH_BYTES)
    looked_at: list[TopicPartition] = []

    def look(hosted: HostedPartitions, asked: messages.FetchPartition, reader: Reader) -> Partition | ErrorCode:
        looked_at.append(asked.topic_partition)
        return find_readable(hosted, asked, reader)

    monkeypatch.setattr(delayed_fetch, "find_readable", look)
    turn = waiting.hosting.turn()
    for name in names:  # as if a stopping broker left three ISRs at once
        waiting.handler.check_role(turn, name)
    assert looked_at == list(names)
    assert waiting.grow(OTHER) == {}
    assert looked_at[3:] == [OTHER, NAME, THIRD]
    assert list(waiting.grow(THIRD)) == [1]
    assert looked_at[6:8] == [THIRD, NAME]


def test_a_fetch_that_names_a_partition_twice_is_answered_beside_another() -> None:
    waiting = Waiting()
    waiting.ask(NAME, NAME)
    waiting.ask(NAME, min_bytes=2 * BATCH_BYTES)
    assert list(waiting.grow()) == [1]
    assert list(waiting.grow()) == [2]


def test_growth_that_several_appends_wait_for_is_answered_a_moment_later() -> None:
    waiting = Waiting()
    waiting.ask(NAME)
    for number in (1, 2):
        asked = messages.ProducePartition(topic=NAME.topic, partition=NAME.partition, batch=batch(0, 0))
        request = messages.ProduceRequest(acks=Acks.ALL, timeout_ms=1000, partitions=(asked,))
        waiting.produces.handle_request(waiting.hosting.turn(), RequestId(100 + number), request)
    turn = waiting.hosting.turn()
    waiting.handler.check_growth(turn, NAME)
    assert answers_of(turn) == {}
    deadlines = [timers.earliest_ms for timers in waiting.handler.timers]
    assert waiting.hosting.now_ms + LINGER_MS in deadlines
    waiting.hosting.now_ms += LINGER_MS
    turn = waiting.hosting.turn()
    waiting.handler.handle_timer(turn)
    assert sizes(answers_of(turn)) == [2 * BATCH_BYTES]


def test_without_a_replica_selector_consumers_read_from_the_leader_whatever_their_rack() -> None:
    waiting = Waiting()
    waiting.append()
    for broker_id in (OWN, FIRST):
        waiting.hosting.register(broker_id, rack=f"rack-{broker_id}")
    waiting.hosting.fetch(FIRST, 1)
    (part,) = parts(waiting.ask(NAME, replica=None, client_rack="rack-1", max_wait_ms=0))
    assert part.preferred_read_replica is None


def test_a_new_leader_answers_its_followers_again_a_moment_later() -> None:
    # Their metadata may come later than the leader's.
    waiting = Waiting()
    turn = waiting.hosting.turn()
    waiting.handler.release_followers(turn, waiting.hosting.partition)
    waiting.ask(OTHER)
    waiting.ask(OTHER, replica=None)
    answered: list[list[RequestId]] = []
    for ms in (RELEASE_AGAIN_MS - 1, 1):
        waiting.hosting.now_ms += ms
        turn = waiting.hosting.turn()
        waiting.handler.handle_timer(turn)
        answered.append(list(answers_of(turn)))
    assert answered == [[], [1]]
