"""ISR changes that leaders ask for: AlterIsr and AlterPartition in three generations (``processAlterPartition``).

The checks before the write depend on the release (``AlterIsrChecks``); the write itself is a compare-and-set at the
version that the leader named. Kafka compares neither the sender with the leader, so that any sender is written as the
leader, nor the ISR with the replicas; KIP-497 does.

A change that is written is not followed by LeaderAndIsr, and the leader epoch stays: the leader learns by the answer,
all other brokers by UpdateMetadata. KIP-497 has it the other way round: the answer leaves before the write and only
says that the change was taken; LeaderAndIsr with the newer partition epoch informs the replicas, also after a write
that was refused. A controller that dies in between has acknowledged what was never done.
"""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from laststand.emulator.core import messages
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import LeaderRecoveryState, TopicId, TopicPartition
from laststand.emulator.core.zookeeper import operations
from laststand.emulator.core.zookeeper.controller.config import ControllerConfig
from laststand.emulator.core.zookeeper.controller.context import ControllerContext
from laststand.emulator.core.zookeeper.controller.control_batch import ControlBatch
from laststand.emulator.core.zookeeper.controller.store import ControllerStore, StateUpdates
from laststand.emulator.core.zookeeper.errors import ControllerMovedError
from laststand.emulator.core.zookeeper.nodes.partition_state import LeaderAndIsr
from laststand.emulator.core.zookeeper.rules import AlterIsrChecks, IsrSettledBy

_VERSION_WITH_RECOVERY_STATE: Final = 1
_VERSION_WITH_TOPIC_IDS: Final = 2


class _Judged(msgspec.Struct, frozen=True, kw_only=True):
    """The answers for some partitions, by their place in the request, and the writes for the others."""

    results: dict[int, messages.AlterPartitionResult]
    wanted: dict[TopicPartition, tuple[int, LeaderAndIsr]]


class AlterPartition:
    """Judges and writes the ISRs that leaders ask for."""

    def __init__(
        self, config: ControllerConfig, context: ControllerContext, store: ControllerStore, batch: ControlBatch
    ) -> None:
        self._checks = config.rules.alter_isr_checks
        self._settled_by = config.rules.isr_settled_by
        self._context = context
        self._store = store
        self._batch = batch

    def handle(
        self, request: messages.AlterPartitionRequest, answer: Callable[[messages.AlterPartitionResponse], None]
    ) -> operations.Program[None]:
        """Answers a request and carries it out, in the order of the rule.

        A controller that was replaced answers UNKNOWN_SERVER_ERROR, but does not resign because of that.
        """
        sender = self._context.brokers.get(request.broker_id)
        if self._checks is AlterIsrChecks.NONE:
            answer(messages.AlterPartitionResponse(error=ErrorCode.UNSUPPORTED_VERSION))
            return
        if sender is None or sender.broker_epoch != request.broker_epoch:
            answer(messages.AlterPartitionResponse(error=ErrorCode.STALE_BROKER_EPOCH))
            return
        yield from self._handle(request, answer)

    def _handle(
        self, request: messages.AlterPartitionRequest, answer: Callable[[messages.AlterPartitionResponse], None]
    ) -> operations.Program[None]:
        judged = self._judge_all(request)
        match self._settled_by:
            case IsrSettledBy.ANSWER:
                answer((yield from self._attempt(request, judged)))
            case IsrSettledBy.LEADER_AND_ISR:
                answer(_answer(judged.results | _accepted(request, judged.wanted)))
                yield from self._attempt(request, judged)

    def _attempt(
        self, request: messages.AlterPartitionRequest, judged: _Judged
    ) -> operations.Program[messages.AlterPartitionResponse]:
        try:
            return (yield from self._carry_out(request, judged))
        except ControllerMovedError:
            self._batch.discard()
            return messages.AlterPartitionResponse(error=ErrorCode.UNKNOWN_SERVER_ERROR)

    def named(self, request: messages.AlterPartitionRequest) -> tuple[TopicPartition, ...]:
        """Returns the known partitions that a request is about."""
        found = (self._name_of(data, request.api_version) for data in request.partitions)
        return tuple(name for name in found if name is not None)

    def _judge_all(self, request: messages.AlterPartitionRequest) -> _Judged:
        results: dict[int, messages.AlterPartitionResult] = {}
        wanted: dict[TopicPartition, tuple[int, LeaderAndIsr]] = {}
        for index, data in enumerate(request.partitions):
            name = self._name_of(data, request.api_version)
            if name is None:
                results[index] = _failed(data, ErrorCode.UNKNOWN_TOPIC_ID)
                continue
            verdict = self._judge(name, _asked(data, request), request)
            if isinstance(verdict, ErrorCode):
                results[index] = _failed(data, verdict)
            elif verdict is None:
                results[index] = self._done(data, self._context.leadership[name].leader_and_isr)
            else:
                wanted[name] = (index, verdict)
        return _Judged(results=results, wanted=wanted)

    def _carry_out(
        self, request: messages.AlterPartitionRequest, judged: _Judged
    ) -> operations.Program[messages.AlterPartitionResponse]:
        results = dict(judged.results)
        updates = yield from self._store.update_states({name: asked for name, (_, asked) in judged.wanted.items()})
        for name, (index, _) in judged.wanted.items():
            data = request.partitions[index]
            if name in updates.written:
                results[index] = self._done(data, updates.written[name])
            elif name in updates.outdated:
                results[index] = _failed(data, ErrorCode.INVALID_UPDATE_VERSION)
            else:
                results[index] = _failed(data, ErrorCode.UNKNOWN_SERVER_ERROR)
        yield from self._publish(self.named(request), updates)
        return _answer(results)

    def _publish(self, named: tuple[TopicPartition, ...], updates: StateUpdates) -> operations.Program[None]:
        # Kafka does not read a node again that it failed to write: its copy stays old until the next election.
        sends_roles = self._settled_by is IsrSettledBy.LEADER_AND_ISR
        read = yield from self._store.read_states((*updates.written, *(updates.outdated if sends_roles else ())))
        self._context.leadership |= read
        if sends_roles:
            # Also for a state that the node had already: a leader that repeats its request has not got the answer.
            for name in named:
                if name in self._context.leadership:
                    self._batch.add_leader_and_isr(
                        self._context.replicas_of(name),
                        name,
                        self._context.leadership[name],
                        self._context.assignments[name],
                    )
        self._batch.add_update_metadata(self._context.registered, named)
        self._batch.close()

    # --- Judging --------------------------------------------------------------------------------------------------

    def _name_of(self, data: messages.AlterPartitionData, api_version: int) -> TopicPartition | None:
        """Returns the partition that the request names; ``None`` if no topic has its id."""
        if api_version < _VERSION_WITH_TOPIC_IDS:
            return TopicPartition(data.topic, data.partition)
        topic = self._topic_with(data.topic_id)
        return None if topic is None else TopicPartition(topic, data.partition)

    def _topic_with(self, topic_id: TopicId | None) -> str | None:
        if topic_id is None:
            return None
        return next((topic for topic, known in self._context.topic_ids.items() if known == topic_id), None)

    def _judge(
        self, name: TopicPartition, asked: LeaderAndIsr, request: messages.AlterPartitionRequest
    ) -> LeaderAndIsr | ErrorCode | None:
        """Returns the state to write, or the error, or ``None`` if the node has that state already."""
        leadership = self._context.leadership.get(name)
        if leadership is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        current = leadership.leader_and_isr
        match self._checks:
            case AlterIsrChecks.NONE | AlterIsrChecks.KAFKA_2_7:
                return _judge_2_7(asked, current)
            case AlterIsrChecks.KAFKA_3_2:
                return _recovery_error(asked, current) or _judge_2_7(asked, current)
            case AlterIsrChecks.KAFKA_3_3:
                return self._judge_3_3(asked, current, request)
            case AlterIsrChecks.KIP:
                return _epoch_error(asked, current) or (
                    self._judge_3_3(asked, current, request)
                    if self._is_honest(name, asked, current)
                    else ErrorCode.INVALID_REQUEST
                )

    def _judge_3_3(
        self, asked: LeaderAndIsr, current: LeaderAndIsr, request: messages.AlterPartitionRequest
    ) -> LeaderAndIsr | ErrorCode | None:
        epoch_error = _epoch_error(asked, current)
        if epoch_error is not None:
            return epoch_error
        if _has_content_of(asked, current):
            return None
        if asked.partition_epoch < current.partition_epoch:
            return ErrorCode.INVALID_UPDATE_VERSION
        recovery_error = _recovery_error(asked, current)
        if recovery_error is not None:
            return recovery_error
        if not set(asked.isr) <= self._context.live_brokers:
            knows_ineligible = request.api_version >= _VERSION_WITH_TOPIC_IDS
            return ErrorCode.INELIGIBLE_REPLICA if knows_ineligible else ErrorCode.OPERATION_NOT_ATTEMPTED
        return asked

    def _is_honest(self, name: TopicPartition, asked: LeaderAndIsr, current: LeaderAndIsr) -> bool:
        """Returns whether the sender leads, and the ISR has it and only replicas (KIP-497: else INVALID_REQUEST)."""
        is_subset = set(asked.isr) <= set(self._context.replicas_of(name)) and len(set(asked.isr)) == len(asked.isr)
        return asked.leader == current.leader and asked.leader in asked.isr and is_subset

    def _done(self, data: messages.AlterPartitionData, leader_and_isr: LeaderAndIsr) -> messages.AlterPartitionResult:
        if self._settled_by is IsrSettledBy.LEADER_AND_ISR:
            return _failed(data, ErrorCode.NONE)
        return messages.AlterPartitionResult(
            topic=data.topic,
            topic_id=data.topic_id,
            partition=data.partition,
            error=ErrorCode.NONE,
            leader=leader_and_isr.leader,
            leader_epoch=leader_and_isr.leader_epoch,
            isr=leader_and_isr.isr,
            leader_recovery_state=leader_and_isr.leader_recovery_state,
            partition_epoch=leader_and_isr.partition_epoch,
        )


def _accepted(
    request: messages.AlterPartitionRequest, wanted: Mapping[TopicPartition, tuple[int, LeaderAndIsr]]
) -> dict[int, messages.AlterPartitionResult]:
    """Returns the results of changes that are accepted and not yet written."""
    return {index: _failed(request.partitions[index], ErrorCode.NONE) for index, _ in wanted.values()}


def _answer(results: Mapping[int, messages.AlterPartitionResult]) -> messages.AlterPartitionResponse:
    return messages.AlterPartitionResponse(
        error=ErrorCode.NONE, partitions=tuple(results[index] for index in sorted(results))
    )


def _asked(data: messages.AlterPartitionData, request: messages.AlterPartitionRequest) -> LeaderAndIsr:
    has_recovery_state = request.api_version >= _VERSION_WITH_RECOVERY_STATE
    return LeaderAndIsr(
        leader=request.broker_id,
        leader_epoch=data.leader_epoch,
        isr=tuple(member.broker_id for member in data.new_isr),
        leader_recovery_state=data.leader_recovery_state if has_recovery_state else LeaderRecoveryState.RECOVERED,
        partition_epoch=data.partition_epoch,
    )


def _judge_2_7(asked: LeaderAndIsr, current: LeaderAndIsr) -> LeaderAndIsr | ErrorCode | None:
    # A greater leader epoch passes, and is written.
    if asked.leader_epoch < current.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    return None if _has_content_of(asked, current) else asked


def _epoch_error(asked: LeaderAndIsr, current: LeaderAndIsr) -> ErrorCode | None:
    """Returns an error if this controller's state is older than the leader's, or the leader is deposed."""
    if asked.partition_epoch > current.partition_epoch or asked.leader_epoch > current.leader_epoch:
        return ErrorCode.NOT_CONTROLLER
    return ErrorCode.FENCED_LEADER_EPOCH if asked.leader_epoch < current.leader_epoch else None


def _recovery_error(asked: LeaderAndIsr, current: LeaderAndIsr) -> ErrorCode | None:
    """Returns INVALID_REQUEST where a recovering partition would have more than one member, or recover again."""
    if asked.leader_recovery_state is LeaderRecoveryState.RECOVERED:
        return None
    is_again = current.leader_recovery_state is LeaderRecoveryState.RECOVERED
    return ErrorCode.INVALID_REQUEST if is_again or len(asked.isr) > 1 else None


def _has_content_of(asked: LeaderAndIsr, current: LeaderAndIsr) -> bool:
    """Returns whether the node already has that state, at any version: a change that is sent twice succeeds twice."""
    return msgspec.structs.replace(asked, partition_epoch=current.partition_epoch) == current


def _failed(data: messages.AlterPartitionData, error: ErrorCode) -> messages.AlterPartitionResult:
    return messages.AlterPartitionResult(
        topic=data.topic, topic_id=data.topic_id, partition=data.partition, error=error
    )
