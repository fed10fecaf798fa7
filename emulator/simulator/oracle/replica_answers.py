"""Replicas' answers to the controller's GetReplicaLogInfo, as they reached the controller.

Taken from the controller's inputs and effects, not from its events. Answers are lost with the controller process that
asked for them.

Events are reported once the records before them are durable, so a recovery may be dropped, with its answers, before the
event that reports it. Therefore an answer must count only if it was asked for after the last reported drop.
"""

from collections.abc import Mapping, Sequence, Set
from typing import NamedTuple

from laststand.emulator.core import inputs, messages
from laststand.emulator.core.effects import AppendMetadata, Effect, SendRequest
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.events import ReplicaAnswer, UncleanLeaderElected, UncleanRecoveryDropped
from laststand.emulator.core.types import (
    BrokerEpoch,
    BrokerId,
    CorrelationId,
    LeaderEpoch,
    MetadataOffset,
    NodeId,
    TopicId,
)

_Partition = tuple[TopicId, int]


class _Asked(NamedTuple):
    node_id: NodeId
    moment: int


class Delivered(NamedTuple):
    """A replica's answer, the leader epoch that the replica knew, and when the replica was asked."""

    answer: ReplicaAnswer
    current_leader_epoch: LeaderEpoch
    asked_at: int


class Heard(NamedTuple):
    """The answers on which a controller could base an election, by broker, and those that it must not ignore."""

    answers: Mapping[BrokerId, ReplicaAnswer]
    must_count: Set[BrokerId]


class ReplicaAnswers:
    """The answers of one run. Moments are numbers of the controller's steps and of its reports."""

    def __init__(self) -> None:
        self._moment = 0
        self._asked: dict[CorrelationId, _Asked] = {}
        self._delivered: dict[_Partition, dict[BrokerId, Delivered]] = {}
        self._decided: dict[MetadataOffset, Mapping[BrokerId, Delivered]] = {}
        self._dropped_at: dict[_Partition, int] = {}
        self._ended_at = 0
        self._term = 0

    def stepped(self, term: int, incoming: object, effects: Sequence[Effect]) -> None:
        """A controller has processed an input; its effects are not executed yet. Only the latest term counts."""
        if term < self._term:
            return
        if term > self._term:
            self._term = term
            self.ended()
        self._moment += 1
        match incoming:
            case inputs.ResponseReceived(
                correlation_id=correlation_id, response=messages.GetReplicaLogInfoResponse() as response
            ) if correlation_id in self._asked:
                self._deliver(self._asked.pop(correlation_id), response)
            case inputs.RequestFailed(correlation_id=correlation_id):
                self._asked.pop(correlation_id, None)
            case _:
                pass
        for effect in effects:
            match effect:
                case SendRequest(request=messages.GetReplicaLogInfoRequest()):
                    self._asked[effect.correlation_id] = _Asked(effect.destination, self._moment)
                case AppendMetadata(events=events):
                    for event in events:
                        if isinstance(event, UncleanLeaderElected):
                            found = self._delivered.get((event.topic_id, event.partition), {})
                            self._decided[event.metadata_offset] = dict(found)
                case _:
                    pass

    def dropped(self, event: UncleanRecoveryDropped) -> None:
        """The controller reported that it had ended a recovery without choosing."""
        self._moment += 1
        self._dropped_at[event.topic_id, event.partition] = self._moment

    def ended(self) -> None:
        """The controller's process ended, perhaps before it reported a dropped recovery."""
        self._moment += 1
        self._ended_at = self._moment
        self._asked.clear()
        self._delivered.clear()

    def heard(
        self,
        event: UncleanLeaderElected,
        *,
        leader_epoch: LeaderEpoch,
        registered: Mapping[BrokerId, BrokerEpoch],
    ) -> Heard:
        """Returns the answers that the controller could use when it decided an election.

        Args:
            event: the election.
            leader_epoch: the partition's leader epoch before the election.
            registered: the brokers' epochs at the election.
        """
        valid = {
            broker_id: delivered
            for broker_id, delivered in self._decided.get(event.metadata_offset, {}).items()
            if delivered.current_leader_epoch == leader_epoch
            and delivered.answer.broker_epoch == registered.get(broker_id)
        }
        since = max(self._ended_at, self._dropped_at.get((event.topic_id, event.partition), 0))
        return Heard(
            answers={broker_id: delivered.answer for broker_id, delivered in valid.items()},
            must_count={broker_id for broker_id, delivered in valid.items() if delivered.asked_at > since},
        )

    def _deliver(self, asked: _Asked, response: messages.GetReplicaLogInfoResponse) -> None:
        broker_id = BrokerId(asked.node_id)
        for info in response.partitions:
            if (
                response.broker_epoch is None
                or info.error is not ErrorCode.NONE
                or info.current_leader_epoch is None
                or info.log_end_offset is None
            ):
                continue
            answer = ReplicaAnswer(
                broker_id, response.broker_epoch, info.last_written_leader_epoch, info.log_end_offset
            )
            answers = self._delivered.setdefault((info.topic_id, info.partition), {})
            answers[broker_id] = Delivered(answer, info.current_leader_epoch, asked.moment)
