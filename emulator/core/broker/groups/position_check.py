"""Positions that are compared with the logs that they are in before a group is told them (KIP-704, KIP-320).

A log may have lost records that a group had read: its position is beyond the end then, or, once the log is written
again, in the middle of records that the group never saw. The leader epoch that was committed with a position tells: its
records end, in the leader's log, where the two logs part. No position is told beyond that.
"""

from typing import Final, NamedTuple

from msgspec.structs import replace

from laststand.emulator.core import messages
from laststand.emulator.core.broker.coordination.caller import Answerable
from laststand.emulator.core.broker.replicas.config import BrokerConfig
from laststand.emulator.core.broker.replicas.hosted import HostedPartitions
from laststand.emulator.core.broker.replicas.in_flight_requests import InFlightRequests
from laststand.emulator.core.broker.replicas.offset_for_leader_epoch import offsets_for_leader_epochs
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.group_messages import CommittedOffset, OffsetFetchResponse
from laststand.emulator.core.types import BrokerId, OffsetBeyondEnd, TopicPartition

_WAITED_FOR: Final = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})
"""Errors of a leader that is not known yet, or that recovers: the group asks again."""


class CheckedCaller(NamedTuple):
    """The sender of an OffsetFetch; it is answered once the positions are compared."""

    check: "PositionCheck"
    caller: Answerable

    def answer(self, turn: Turn, response: messages.Response) -> None:
        """Has positions compared, and answers then."""
        if isinstance(response, OffsetFetchResponse) and response.offsets:
            self.check.begin(turn, self.caller, response)
        else:
            self.caller.answer(turn, response)


class _Comparison:
    """An answer that waits for leaders: what they said, and how many have not yet."""

    __slots__ = ("caller", "cause_id", "response", "results", "unanswered")

    def __init__(self, turn: Turn, caller: Answerable, response: OffsetFetchResponse) -> None:
        self.caller = caller
        self.cause_id = turn.cause_id
        self.response = response
        self.results: dict[TopicPartition, messages.EpochPositionResult | None] = {}
        self.unanswered = 0


class PositionCheck:
    """Asks leaders where the epochs of positions end in their logs.

    Args:
        config: of the broker.
        hosted: its partitions.
        in_flight: its requests.
    """

    def __init__(self, config: BrokerConfig, hosted: HostedPartitions, in_flight: InFlightRequests) -> None:
        self.is_on = config.switches.offset_beyond_end is OffsetBeyondEnd.CLAMP
        self._own_id = config.broker_id
        self._timeout_ms = config.properties.request_timeout_ms
        self._hosted = hosted
        self._in_flight = in_flight
        self._waiting: list[tuple[messages.OffsetForLeaderEpochRequest, _Comparison]] = []

    def begin(self, turn: Turn, caller: Answerable, response: OffsetFetchResponse) -> None:
        """Asks the leaders of all partitions whose position has a leader epoch; it answers then, or at once."""
        comparison = _Comparison(turn, caller, response)
        by_leader: dict[BrokerId, list[messages.EpochPosition]] = {}
        for position in response.offsets:
            state = self._hosted.image.partitions.get(position.partition)
            if state is not None and state.leader is not None and position.leader_epoch is not None:
                topic, partition = position.partition
                asked = messages.EpochPosition(topic=topic, partition=partition, leader_epoch=position.leader_epoch)
                by_leader.setdefault(state.leader, []).append(asked)
        comparison.unanswered = 1 + len(by_leader)
        for leader, asked_of in by_leader.items():
            request = messages.OffsetForLeaderEpochRequest(partitions=tuple(asked_of))
            if leader == self._own_id:
                self._take(turn, comparison, offsets_for_leader_epochs(self._hosted, request))
            else:
                self._waiting.append((request, comparison))
                self._in_flight.send(turn, leader, request, timeout_ms=self._timeout_ms)
        self._answer_if_complete(turn, comparison)

    def handle_response(self, turn: Turn, request: messages.Request, response: messages.Response) -> bool:
        """Takes the answer of a leader; returns whether it is one to a request of this."""
        comparison = self._pop(request)
        if comparison is not None and isinstance(response, messages.OffsetForLeaderEpochResponse):
            self._take(turn, comparison, response)
        return comparison is not None

    def handle_failure(self, turn: Turn, request: messages.Request) -> bool:
        """Takes note that a leader did not answer; returns whether that was asked by this."""
        comparison = self._pop(request)
        if comparison is not None and isinstance(request, messages.OffsetForLeaderEpochRequest):
            for asked in request.partitions:
                comparison.results[TopicPartition(asked.topic, asked.partition)] = None
            self._answer_if_complete(turn, comparison)
        return comparison is not None

    def _pop(self, request: messages.Request) -> _Comparison | None:
        for place, (sent, comparison) in enumerate(self._waiting):
            if sent is request:
                del self._waiting[place]
                return comparison
        return None

    def _take(self, turn: Turn, comparison: _Comparison, response: messages.OffsetForLeaderEpochResponse) -> None:
        for result in response.partitions:
            comparison.results[TopicPartition(result.topic, result.partition)] = result
        self._answer_if_complete(turn, comparison)

    def _answer_if_complete(self, turn: Turn, comparison: _Comparison) -> None:
        comparison.unanswered -= 1
        if comparison.unanswered:
            return
        offsets: list[CommittedOffset] = []
        unstable: list[TopicPartition] = [*comparison.response.unstable]
        for position in comparison.response.offsets:
            checked = _checked(position, comparison.results)
            if checked is None:
                unstable.append(position.partition)
            else:
                offsets.append(checked)
        answer = replace(comparison.response, offsets=tuple(offsets), unstable=tuple(sorted(unstable)))
        cause_id, turn.cause_id = turn.cause_id, comparison.cause_id
        comparison.caller.answer(turn, answer)
        turn.cause_id = cause_id


def _checked(
    position: CommittedOffset, results: dict[TopicPartition, messages.EpochPositionResult | None]
) -> CommittedOffset | None:
    """Returns a position that is in the leader's log, ``None`` where the group has to ask again."""
    if position.partition not in results:
        return position  # nobody leads the partition, or no epoch was committed
    result = results[position.partition]
    if result is None or result.error in _WAITED_FOR:
        return None
    if result.end_offset is None or position.offset <= result.end_offset:
        return position
    return replace(position, offset=result.end_offset, leader_epoch=result.leader_epoch)
