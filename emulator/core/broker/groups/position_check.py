"""Committed positions are compared with the partitions' logs before OffsetFetch is answered (KIP-704, KIP-320).

A log may have lost records that a group had read. The group's position is then beyond the log end, or, once new records
were appended, among records that the group never saw. The end offset, in the leader's log, of the leader epoch that was
committed with the position shows where the two histories part. No position beyond that offset is answered.
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
    """The sender of an OffsetFetch; the answer is sent once its positions are compared."""

    check: "PositionCheck"
    caller: Answerable

    def answer(self, turn: Turn, response: messages.Response) -> None:
        """Compares the positions with the leaders' logs, and answers afterwards."""
        if isinstance(response, OffsetFetchResponse) and response.offsets:
            self.check.begin(turn, self.caller, response)
        else:
            self.caller.answer(turn, response)


class _Comparison:
    """An answer that waits for leaders: the results so far, and the number of leaders that have not answered."""

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
        hosted: the partitions that the broker hosts.
        in_flight: the broker's unanswered requests.
    """

    def __init__(self, config: BrokerConfig, hosted: HostedPartitions, in_flight: InFlightRequests) -> None:
        self.is_on = config.switches.offset_beyond_end is OffsetBeyondEnd.CLAMP
        self._own_id = config.broker_id
        self._timeout_ms = config.properties.request_timeout_ms
        self._hosted = hosted
        self._in_flight = in_flight
        self._waiting: list[tuple[messages.OffsetForLeaderEpochRequest, _Comparison]] = []

    def begin(self, turn: Turn, caller: Answerable, response: OffsetFetchResponse) -> None:
        """Asks the leaders of all partitions whose position has a leader epoch; answers at once if there are none."""
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
        """Handles a leader's answer; returns whether this object had sent the request."""
        comparison = self._pop(request)
        if comparison is not None and isinstance(response, messages.OffsetForLeaderEpochResponse):
            self._take(turn, comparison, response)
        return comparison is not None

    def handle_failure(self, turn: Turn, request: messages.Request) -> bool:
        """Handles that a leader did not answer; returns whether this object had sent the request."""
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
    """Returns a position, lowered to the leader's log if need be; ``None`` if the group has to ask again."""
    if position.partition not in results:
        return position  # the partition has no leader, or no epoch was committed
    result = results[position.partition]
    if result is None or result.error in _WAITED_FOR:
        return None
    if result.end_offset is None or position.offset <= result.end_offset:
        return position
    return replace(position, offset=result.end_offset, leader_epoch=result.leader_epoch)
