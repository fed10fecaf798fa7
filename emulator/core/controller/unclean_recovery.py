"""The unclean recovery manager: asks replicas of leaderless partitions what they hold, and elects the best (KIP-966).

Nothing here is durable. What is to be recovered follows from the image alone: after every change of it each leaderless
partition is looked at again, tasks begin and are dropped accordingly, so another controller process starts every
recovery again, and a partition that got a leader meanwhile, was deleted, or waits for somebody who went away again, is
left alone. ``advance`` is called after every input::

    look at the image -> choose where enough is known -> give up requests -> ask whoever may lead and has not answered

An answer counts only while its broker epoch is the registered one and its leader epoch the partition's; otherwise it is
dropped and the replica asked again. Each broker is asked one request at a time, about many partitions.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from laststand.emulator.core import effects, messages
from laststand.emulator.core.controller.decision import Decision, UncleanElection
from laststand.emulator.core.controller.partition_change import PartitionTarget
from laststand.emulator.core.controller.recovery import (
    RecoveryAction,
    RecoveryDecision,
    ReplicaReport,
    choose_leader,
    decide_recovery,
)
from laststand.emulator.core.controller.view import ClusterView
from laststand.emulator.core.errors import ErrorCode, InvariantError
from laststand.emulator.core.events import (
    ControllerEvent,
    ReplicaAnswer,
    UncleanMethod,
    UncleanRecoveryDropped,
    UncleanRecoveryStarted,
)
from laststand.emulator.core.image import PartitionState
from laststand.emulator.core.types import (
    BrokerEpoch,
    BrokerId,
    CauseId,
    ChangeReason,
    CorrelationId,
    ElectionType,
    MetadataOffset,
    RecoveryDropReason,
    RecoveryOrigin,
    RecoveryStrategy,
    TopicId,
    TopicPartition,
)

REQUEST_PARTITIONS_MAX: Final = 2000
"""Partitions of one request (KIP-966); a broker serves fewer and says so of the rest, which are asked for again."""

REQUEST_TIMEOUT_MS: Final = 5000


class RecoveryEnd(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of a recovery that an administrator asked for."""

    partition: TopicPartition
    error: ErrorCode
    message: str = ""


class RecoveryProgress(msgspec.Struct, frozen=True, kw_only=True):
    """The result of ``advance``; its decisions must be committed before the next call."""

    decisions: tuple[Decision, ...]
    events: tuple[ControllerEvent, ...]
    requests: tuple[effects.SendRequest, ...]
    ended: tuple[RecoveryEnd, ...]


class _RequestedRecovery(msgspec.Struct, frozen=True, kw_only=True):
    """An administrator's request for a recovery; its strategy counts instead of the topic's own."""

    strategy: RecoveryStrategy
    deadline_ms: int


class _Task:
    """A recovery under way."""

    def __init__(self, state: PartitionState, *, deadline_ms: int) -> None:
        self.topic_id = state.topic_id
        self.leader_epoch = state.leader_epoch
        self.deadline_ms = deadline_ms
        self.is_overdue = False
        self.strategy = RecoveryStrategy.NONE
        self.must_hear_from: tuple[BrokerId, ...] = ()
        self.reports: dict[BrokerId, ReplicaReport] = {}
        self.discarded: set[BrokerId] = set()

    def drop_report(self, broker_id: BrokerId) -> None:
        """Forgets an answer that does not count, but not that the replica has answered."""
        self.reports.pop(broker_id, None)
        self.discarded.add(broker_id)


class _Asked(msgspec.Struct, frozen=True, kw_only=True):
    broker_id: BrokerId
    partitions: tuple[tuple[TopicId, int], ...]


class _Step:
    """The results so far of one call of ``advance``."""

    def __init__(self, cause_id: CauseId) -> None:
        self.cause_id = cause_id
        self.decisions: list[Decision] = []
        self.events: list[ControllerEvent] = []
        self.requests: list[effects.SendRequest] = []
        self.ended: list[RecoveryEnd] = []


class UncleanRecoveries:
    """All recoveries of a controller.

    Args:
        view: the input of decisions.
    """

    def __init__(self, view: ClusterView) -> None:
        self._view = view
        self._tasks: dict[TopicPartition, _Task] = {}
        self._requested: dict[TopicPartition, _RequestedRecovery] = {}
        self._asked: dict[CorrelationId, _Asked] = {}
        self._retry_at_ms: dict[BrokerId, int] = {}
        self._next_correlation = 0
        self._seen: MetadataOffset | None = None

    @property
    def under_way(self) -> tuple[TopicPartition, ...]:
        """Partitions whose replicas are being asked."""
        return tuple(sorted(self._tasks))

    @property
    def _has_work(self) -> bool:
        return bool(self._tasks or self._requested or self._retry_at_ms)

    def request(self, partition: TopicPartition, strategy: RecoveryStrategy, *, now_ms: int) -> None:
        """Recovers a partition as an administrator asks; the outcome is an ``ended`` of a later ``advance``."""
        timeout_ms = self._view.properties.unclean_recovery_timeout_ms
        self._requested[partition] = _RequestedRecovery(strategy=strategy, deadline_ms=now_ms + timeout_ms)
        self._seen = None

    def next_deadline_ms(self) -> int | None:
        """Returns when ``advance`` is wanted even if nothing happens."""
        if not self._has_work:
            return None
        waits = [task.deadline_ms for task in self._tasks.values() if not task.is_overdue]
        waits += [requested.deadline_ms for requested in self._requested.values()]
        return min([*waits, *self._retry_at_ms.values()], default=None)

    # --- Answers --------------------------------------------------------------------------------------------------

    def handle_response(self, correlation_id: CorrelationId, response: messages.Response, *, now_ms: int) -> None:
        """Handles a replica's answer about its log.

        Raises:
            InvariantError: there was no such request, or that is no answer to it.
        """
        asked = self._pop_asked(correlation_id)
        if not isinstance(response, messages.GetReplicaLogInfoResponse):
            raise InvariantError(f"broker {asked.broker_id} answered {response}")
        registration = self._view.image.brokers.get(asked.broker_id)
        if registration is None or registration.broker_epoch != response.broker_epoch:
            for topic_id, partition in asked.partitions:
                if (task := self._task(topic_id, partition)) is not None:
                    task.discarded.add(asked.broker_id)
            self._ask_again(asked.broker_id, now_ms=now_ms)
            return
        verdicts = [
            self._note(asked.broker_id, registration.broker_epoch, info)
            for info in response.partitions
            if info.error is not ErrorCode.REQUEST_LIMIT_REACHED
        ]
        if not verdicts or not all(verdicts):
            self._ask_again(asked.broker_id, now_ms=now_ms)

    def handle_failure(self, correlation_id: CorrelationId, *, now_ms: int) -> None:
        """Notes that a broker will not answer; it is asked again.

        Raises:
            InvariantError: there was no such request.
        """
        self._ask_again(self._pop_asked(correlation_id).broker_id, now_ms=now_ms)

    def _ask_again(self, broker_id: BrokerId, *, now_ms: int) -> None:
        """Asks a broker again after a backoff, because it did not answer, or its answer did not count."""
        self._retry_at_ms[broker_id] = now_ms + self._view.properties.unclean_recovery_retry_backoff_ms

    def _pop_asked(self, correlation_id: CorrelationId) -> _Asked:
        asked = self._asked.pop(correlation_id, None)
        if asked is None:
            raise InvariantError(f"no request {correlation_id} under way")
        return asked

    def _task(self, topic_id: TopicId, partition: int) -> _Task | None:
        topic = self._view.image.topic_names.get(topic_id)
        return None if topic is None else self._tasks.get(TopicPartition(topic, partition))

    def _note(self, broker_id: BrokerId, broker_epoch: BrokerEpoch, info: messages.ReplicaLogInfo) -> bool:
        """Returns whether there is no need to ask about this partition again."""
        task = self._task(info.topic_id, info.partition)
        if task is None:
            return True
        if info.error is not ErrorCode.NONE or info.current_leader_epoch is None or info.log_end_offset is None:
            return False  # its metadata are older than the topic, or it is still opening its logs
        name = TopicPartition(self._view.image.topic_names[info.topic_id], info.partition)
        if info.current_leader_epoch != self._view.image.partitions[name].leader_epoch:
            task.drop_report(broker_id)
            return False
        task.reports[broker_id] = ReplicaReport(
            broker_id=broker_id,
            broker_epoch=broker_epoch,
            last_written_leader_epoch=info.last_written_leader_epoch,
            current_leader_epoch=info.current_leader_epoch,
            log_end_offset=info.log_end_offset,
        )
        return True

    # --- Progress -------------------------------------------------------------------------------------------------

    def advance(self, *, now_ms: int, cause_id: CauseId) -> RecoveryProgress:
        """Returns the consequences of all inputs since the last call."""
        step = _Step(cause_id)
        if self._view.properties.unclean_recovery_manager_enabled:
            if self._seen != self._view.image.next_offset:
                self._seen = self._view.image.next_offset
                self._check_image(step, now_ms=now_ms)
            if self._has_work:
                self._go_on(step, now_ms=now_ms)
        return RecoveryProgress(
            decisions=tuple(step.decisions),
            events=tuple(step.events),
            requests=tuple(step.requests),
            ended=tuple(step.ended),
        )

    def _go_on(self, step: _Step, *, now_ms: int) -> None:
        for task in self._tasks.values():
            task.is_overdue = task.is_overdue or task.deadline_ms <= now_ms
        active = self._view.active_brokers()
        epochs = {broker.broker_id: broker.broker_epoch for broker in self._view.image.brokers.values()}
        for partition in self.under_way:
            self._choose(step, partition, active=active, broker_epochs=epochs)
        self._give_up(step, now_ms=now_ms)
        self._ask(step, now_ms=now_ms)

    def _check_image(self, step: _Step, *, now_ms: int) -> None:
        partitions = self._view.image.partitions
        for partition in sorted(self._tasks.keys() | self._requested.keys()):
            state = partitions.get(partition)
            task = self._tasks.get(partition)
            if state is None or (task is not None and task.topic_id != state.topic_id):
                self._drop(
                    step, partition, reason=RecoveryDropReason.DELETED, error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                )
            elif state.leader is not None:
                self._drop(step, partition, reason=RecoveryDropReason.ELECTED, error=ErrorCode.NONE)
        active = self._view.active_brokers()
        for partition, state in self._view.leaderless_partitions():
            strategy = self._strategy(partition)
            decision = decide_recovery(state, active=active, strategy=strategy)
            if decision.action is RecoveryAction.UNCLEAN_RECOVERY:
                self._continue(step, partition, state, strategy, decision, now_ms=now_ms)
            else:
                error = ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
                self._drop(step, partition, reason=RecoveryDropReason(decision.action.value), error=error)

    def _strategy(self, partition: TopicPartition) -> RecoveryStrategy:
        requested = self._requested.get(partition)
        return self._view.recovery_strategy(partition.topic) if requested is None else requested.strategy

    def _continue(
        self,
        step: _Step,
        partition: TopicPartition,
        state: PartitionState,
        strategy: RecoveryStrategy,
        decision: RecoveryDecision,
        *,
        now_ms: int,
    ) -> None:
        task = self._tasks.get(partition)
        if task is None:
            deadline_ms = now_ms + self._view.properties.unclean_recovery_timeout_ms
            task = self._tasks[partition] = _Task(state, deadline_ms=deadline_ms)
        elif task.strategy is strategy:
            task.must_hear_from = decision.must_hear_from
            return
        task.strategy, task.must_hear_from = strategy, decision.must_hear_from
        step.events.append(
            UncleanRecoveryStarted(
                cause_id=step.cause_id,
                topic=partition.topic,
                partition=partition.partition,
                topic_id=state.topic_id,
                leader_epoch=state.leader_epoch,
                strategy=strategy,
                origin=RecoveryOrigin.REQUESTED if partition in self._requested else RecoveryOrigin.CONFIGURED,
                must_hear_from=decision.must_hear_from,
            )
        )

    def _drop(self, step: _Step, partition: TopicPartition, *, reason: RecoveryDropReason, error: ErrorCode) -> None:
        if self._requested.pop(partition, None) is not None:
            step.ended.append(RecoveryEnd(partition=partition, error=error, message=reason))
        task = self._tasks.pop(partition, None)
        if task is not None:
            step.events.append(
                UncleanRecoveryDropped(
                    cause_id=step.cause_id,
                    topic=partition.topic,
                    partition=partition.partition,
                    topic_id=task.topic_id,
                    leader_epoch=task.leader_epoch,
                    reason=reason,
                )
            )

    # --- Choosing -------------------------------------------------------------------------------------------------

    def _choose(
        self,
        step: _Step,
        partition: TopicPartition,
        *,
        active: frozenset[BrokerId],
        broker_epochs: dict[BrokerId, BrokerEpoch],
    ) -> None:
        """Elects, once KIP-966 allows it.

        Balanced waits without a deadline for ``must_hear_from``; until its timeout it also waits for every other
        replica (switch ``recovery_waits``), and Aggressive for every replica that may lead. After the timeout the
        answers so far are enough, or the first answer if there is none yet.
        """
        task, state = self._tasks[partition], self._view.image.partitions[partition]
        asked = [broker_id for broker_id in state.replicas if broker_id in active]
        reports = tuple(task.reports[broker_id] for broker_id in asked if broker_id in task.reports)
        choice = choose_leader(state, reports, broker_epochs=broker_epochs)
        for broker_id in choice.discarded:
            task.drop_report(broker_id)
        waits = self._view.switches.recovery_waits and task.strategy is RecoveryStrategy.BALANCED
        expected = state.replicas if waits else asked
        is_complete = all(broker_id in asked and broker_id in task.reports for broker_id in expected)
        must_wait = any(broker_id not in task.reports for broker_id in task.must_hear_from)
        if choice.leader is None or must_wait or not (is_complete or task.is_overdue):
            return
        counted = tuple(report for report in reports if report.broker_id in task.reports)
        step.decisions += self._elect(partition, choice.leader, task, counted)
        del self._tasks[partition]
        if self._requested.pop(partition, None) is not None:
            step.ended.append(RecoveryEnd(partition=partition, error=ErrorCode.NONE))

    def _elect(
        self, partition: TopicPartition, leader: BrokerId, task: _Task, reports: tuple[ReplicaReport, ...]
    ) -> list[Decision]:
        unclean = UncleanElection(
            method=UncleanMethod.LONGEST_LOG,
            strategy=task.strategy,
            candidates=tuple(report.broker_id for report in reports),
            why=_why(leader, reports),
            must_hear_from=task.must_hear_from,
            answers=tuple(
                ReplicaAnswer(
                    report.broker_id, report.broker_epoch, report.last_written_leader_epoch, report.log_end_offset
                )
                for report in reports
            ),
            discarded=tuple(sorted(task.discarded)),
        )
        target = PartitionTarget(acceptable=frozenset({leader}), election=ElectionType.UNCLEAN)
        return self._view.change_partition(
            partition, target, reason=ChangeReason.UNCLEAN_RECOVERY, broker_id=None, unclean=unclean
        )

    def _give_up(self, step: _Step, *, now_ms: int) -> None:
        for partition in sorted(self._requested):
            if self._requested[partition].deadline_ms <= now_ms:
                self._drop(step, partition, reason=RecoveryDropReason.TIMED_OUT, error=ErrorCode.REQUEST_TIMED_OUT)
                self._seen = None  # the topic's own strategy may want a recovery still

    # --- Asking ---------------------------------------------------------------------------------------------------

    def _ask(self, step: _Step, *, now_ms: int) -> None:
        busy = {asked.broker_id for asked in self._asked.values()}
        for broker_id in sorted(self._view.active_brokers() - busy):
            wanted = list(self._wanted(broker_id))
            if not wanted:
                self._retry_at_ms.pop(broker_id, None)
            elif self._retry_at_ms.get(broker_id, now_ms) <= now_ms:
                self._retry_at_ms.pop(broker_id, None)
                self._send(step, broker_id, tuple(wanted[:REQUEST_PARTITIONS_MAX]))
        for broker_id in self._retry_at_ms.keys() - self._view.active_brokers():
            del self._retry_at_ms[broker_id]

    def _wanted(self, broker_id: BrokerId) -> Iterator[tuple[TopicId, int]]:
        for name in self.under_way:
            task = self._tasks[name]
            if broker_id in self._view.image.partitions[name].replicas and broker_id not in task.reports:
                yield task.topic_id, name.partition

    def _send(self, step: _Step, broker_id: BrokerId, partitions: tuple[tuple[TopicId, int], ...]) -> None:
        correlation_id = CorrelationId(self._next_correlation)
        self._next_correlation += 1
        self._asked[correlation_id] = _Asked(broker_id=broker_id, partitions=partitions)
        step.requests.append(
            effects.SendRequest(
                destination=broker_id,
                correlation_id=correlation_id,
                request=messages.GetReplicaLogInfoRequest(partitions=partitions),
                timeout_ms=REQUEST_TIMEOUT_MS,
                cause_id=step.cause_id,
            )
        )


def _why(leader: BrokerId, reports: tuple[ReplicaReport, ...]) -> str:
    by_id = {report.broker_id: _holding(report) for report in reports}
    others = ", ".join(f"broker {broker_id} {held}" for broker_id, held in by_id.items() if broker_id != leader)
    return f"it {by_id[leader]}; {others or 'nobody else answered'}"


def _holding(report: ReplicaReport) -> str:
    if report.last_written_leader_epoch is None:
        return f"holds no record and ends at {report.log_end_offset}"
    return f"holds leader epoch {report.last_written_leader_epoch} and ends at {report.log_end_offset}"
