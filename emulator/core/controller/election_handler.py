"""ElectLeaders: most elections are answered at once, an unclean recovery when it has ended (KIP-966).

A request is answered as a whole, in its order, so it waits for the last of its recoveries: until each has elected, has
been found impossible, or has taken ``unclean.recovery.timeout.ms``.
"""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from laststand.emulator.core import admin_messages
from laststand.emulator.core.controller.decision import Decision
from laststand.emulator.core.controller.elect_leaders import (
    ELECT_LIMIT,
    elect_leaders,
    request_error,
    requested_partitions,
)
from laststand.emulator.core.controller.unclean_recovery import RecoveryEnd, UncleanRecoveries
from laststand.emulator.core.controller.view import ClusterView
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import CauseId, RequestId, TopicPartition


class AnsweredElection(msgspec.Struct, frozen=True, kw_only=True):
    """A request that waited, and its answer."""

    request_id: RequestId
    cause_id: CauseId
    response: admin_messages.ElectLeadersResponse


class _Waiting:
    """A request whose recoveries have not all ended: results in request order, those that are due by name."""

    def __init__(self, request_id: RequestId, cause_id: CauseId, results: list[admin_messages.PartitionResult]) -> None:
        self.request_id = request_id
        self.cause_id = cause_id
        self.results = results
        self.due: set[TopicPartition] = set()


class ElectionHandler:
    """Answers ElectLeaders requests. Waiting requests are soft state: they end with the controller's process.

    Args:
        view: the input of decisions.
        recoveries: the unclean recovery manager.
    """

    def __init__(self, view: ClusterView, recoveries: UncleanRecoveries) -> None:
        self._view = view
        self._recoveries = recoveries
        self._waiting: list[_Waiting] = []

    def answer(
        self,
        request: admin_messages.ElectLeadersRequest,
        commit: Callable[[Sequence[Decision]], None],
        *,
        request_id: RequestId,
        cause_id: CauseId,
        now_ms: int,
    ) -> admin_messages.ElectLeadersResponse | None:
        """Returns the answer, or ``None`` if ``conclude`` will return it later."""
        error = request_error(request)
        if error is not ErrorCode.NONE:
            message = f"election type {request.election_type} over {'all' if request.partitions is None else 'these'}"
            return admin_messages.ElectLeadersResponse(error=error, error_message=message)
        election = admin_messages.RequestedElection(request.election_type)
        waiting = _Waiting(request_id, cause_id, [])
        for asked in requested_partitions(self._view, request):
            if len(waiting.results) >= ELECT_LIMIT:
                waiting.results.append(_over_limit(asked))
                continue
            outcome = elect_leaders(self._view, asked, election)
            commit(outcome.decisions)
            if outcome.recovery is not None:
                self._recoveries.request(asked.topic_partition, outcome.recovery, now_ms=now_ms)
                waiting.due.add(asked.topic_partition)
            elif request.partitions is None and outcome.error is ErrorCode.ELECTION_NOT_NEEDED:
                continue
            waiting.results.append(_result(asked.topic_partition, outcome.error, outcome.message))
        if not waiting.due:
            return admin_messages.ElectLeadersResponse(error=ErrorCode.NONE, partitions=tuple(waiting.results))
        self._waiting.append(waiting)
        return None

    def conclude(self, ended: Iterable[RecoveryEnd]) -> list[AnsweredElection]:
        """Takes the ends of recoveries and returns the requests that wait for none any more."""
        if not self._waiting:
            return []
        for end in ended:
            for waiting in self._waiting:
                if end.partition in waiting.due:
                    waiting.due.discard(end.partition)
                    waiting.results = [
                        _result(end.partition, end.error, end.message)
                        if result.topic_partition == end.partition
                        else result
                        for result in waiting.results
                    ]
        answered = [waiting for waiting in self._waiting if not waiting.due]
        self._waiting = [waiting for waiting in self._waiting if waiting.due]
        return [
            AnsweredElection(
                request_id=waiting.request_id,
                cause_id=waiting.cause_id,
                response=admin_messages.ElectLeadersResponse(error=ErrorCode.NONE, partitions=tuple(waiting.results)),
            )
            for waiting in answered
        ]


def _result(partition: TopicPartition, error: ErrorCode, message: str) -> admin_messages.PartitionResult:
    return admin_messages.PartitionResult(
        topic=partition.topic, partition=partition.partition, error=error, error_message=message
    )


def _over_limit(asked: admin_messages.ElectablePartition) -> admin_messages.PartitionResult:
    message = f"a request is served {ELECT_LIMIT} partitions"
    return _result(asked.topic_partition, ErrorCode.REQUEST_LIMIT_REACHED, message)
