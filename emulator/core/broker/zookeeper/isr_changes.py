"""Routes an ISR change in a ZooKeeper cluster: the leader writes it itself, or asks the controller.

Below IBP 2.7-IV2 the leader writes, one change at a time, and informs the controller by a notification later; its
partition is locked meanwhile. From 2.7-IV2 on, the leader asks the controller (``alter_partition``).
"""

from typing import TypeAlias

import msgspec

from laststand.emulator.core import messages
from laststand.emulator.core.broker.replicas.config import BrokerConfig
from laststand.emulator.core.broker.replicas.hosted import HostedPartitions
from laststand.emulator.core.broker.replicas.isr import IsrProposal, PendingShrink
from laststand.emulator.core.broker.replicas.isr_changes import handle_answer, maybe_shrink_isr
from laststand.emulator.core.broker.replicas.partition import Partition
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.broker.zookeeper.alter_partition import ZooKeeperAlterPartition
from laststand.emulator.core.broker.zookeeper.control_fence import ControlFence
from laststand.emulator.core.broker.zookeeper.control_requests import ControlRequests
from laststand.emulator.core.broker.zookeeper.isr import LeaderIsrWrites, leader_write, write_isr
from laststand.emulator.core.broker.zookeeper.isr_notifier import LOOK_INTERVAL_MS, IsrChangeNotifier, notify
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.timers import TimerQueue, earliest_of
from laststand.emulator.core.types import BrokerId, TopicPartition
from laststand.emulator.core.zookeeper import operations
from laststand.emulator.core.zookeeper.identifiers import ControllerEpoch, NodeVersion
from laststand.emulator.core.zookeeper.inter_broker_protocol import InterBrokerProtocol, IsrChange
from laststand.emulator.core.zookeeper.rules import ZooKeeperRules


class IsrWritten(msgspec.Struct, frozen=True):
    """A leader's own write was answered: the version that it wrote, or ``None`` where the node holds another state."""

    proposal: IsrProposal
    version: NodeVersion | None


class Notified(msgspec.Struct, frozen=True):
    """A notification node was written."""


class _Acknowledged(msgspec.Struct, frozen=True, kw_only=True):
    """A change that a controller accepted but had not made yet, and the highest controller epoch known then."""

    proposal: IsrProposal
    controller_epoch: ControllerEpoch


IsrOutcome: TypeAlias = IsrWritten | Notified


class ZooKeeperIsrChanges:
    """All ISR changes of a broker.

    Attributes:
        timers: when notifications are due; empty if the leader asks the controller.
        programs: ZooKeeper programs to be run, in order; the broker's caller empties the list.
    """

    def __init__(
        self,
        config: BrokerConfig,
        rules: ZooKeeperRules,
        ibp: InterBrokerProtocol,
        *,
        hosted: HostedPartitions,
        control: ControlRequests,
        fence: ControlFence,
    ) -> None:
        self._config = config
        self._state_format = rules.state_format
        self._leader_writes = ibp.isr_change is IsrChange.ZOOKEEPER
        self._hosted = hosted
        self._control = control
        self._fence = fence
        self._alter_partitions = ZooKeeperAlterPartition(config, rules, ibp)
        self._acknowledged: dict[TopicPartition, _Acknowledged] = {}
        self._writes = LeaderIsrWrites(rules)
        self._notifier: IsrChangeNotifier | None = None
        self.timers: TimerQueue[str] = TimerQueue()
        self.programs: list[operations.Program[IsrOutcome]] = []

    def start(self, turn: Turn) -> None:
        """Starts the periodic check for changes to notify."""
        if self._leader_writes:
            self._notifier = IsrChangeNotifier(now_ms=turn.now_ms)
            self.timers.set("notify", at_ms=turn.now_ms + LOOK_INTERVAL_MS)

    def next_deadline_ms(self) -> int | None:
        """Returns when the controller has to be asked again or notified; ``None`` if neither is due."""
        return earliest_of((self._alter_partitions.next_deadline_ms(), self.timers.earliest_ms))

    def is_locked(self, name: TopicPartition) -> bool:
        """Returns whether a partition is locked: its ISR write, and so its requests, wait for ZooKeeper."""
        return self._writes.is_locked(name)

    def submit(self, turn: Turn, proposal: IsrProposal) -> None:
        """Submits a change, or reverts it if an earlier change is still under way."""
        partition = self._hosted.get(proposal.partition)
        if partition is None:
            return
        if self._leader_writes:
            is_taken = self._write(proposal)
        else:
            is_taken = self._alter_partitions.submit(proposal) is ErrorCode.NONE
        if not is_taken:
            handle_answer(turn, partition, proposal, _not_attempted(proposal))

    # --- Written by the leader ------------------------------------------------------------------------------------

    def _write(self, proposal: IsrProposal) -> bool:
        if self._writes.is_any_under_way:
            return False
        self._writes.begin(proposal)
        decider = self._control.decider_of(proposal.partition)
        write = leader_write(proposal, leader=self._config.broker_id, decider=decider)
        self.programs.append(_written(proposal, write_isr(write, state_format=self._state_format)))
        return True

    def handle_written(self, turn: Turn, written: IsrWritten) -> None:
        """Applies the outcome of a write; after a shrink, continues to shrink the other partitions' ISRs."""
        name = written.proposal.partition
        partition = self._hosted.get(name)
        if partition is None:
            self._writes.forget(name)
        else:
            self._writes.finish(turn, partition, written.proposal, written.version)
        if written.version is not None and self._notifier is not None:
            self._notifier.note(name, now_ms=turn.now_ms)
        if isinstance(written.proposal.state, PendingShrink):
            self._shrink_others(turn, partition)

    def _shrink_others(self, turn: Turn, written: Partition | None) -> None:
        for partition in self._hosted:
            if partition is not written:
                maybe_shrink_isr(turn, partition)

    def give_up(self, turn: Turn) -> None:
        """Ends the writes of an expired session."""
        self.programs.clear()
        self._writes.give_up(turn, self._hosted.get)

    # --- Asked of the controller ----------------------------------------------------------------------------------

    def controller_to_ask(self, known: BrokerId | None) -> BrokerId | None:
        """Returns the broker to ask: the last one, until it refuses or does not answer, else the known controller."""
        return self._alter_partitions.controller_to_ask(known)

    def next_request(self, turn: Turn) -> messages.AlterPartitionRequest | None:
        """Returns the next request to the controller; nothing before this broker is registered."""
        broker_epoch = self._fence.broker_epoch
        if broker_epoch is None:
            return None
        return self._alter_partitions.pop_due(broker_epoch=broker_epoch, now_ms=turn.now_ms)

    def handle_reply(
        self, turn: Turn, request: messages.AlterPartitionRequest, reply: messages.AlterPartitionResponse
    ) -> None:
        """Applies the controller's answer."""
        for proposal, result in self._alter_partitions.answered(request, reply, now_ms=turn.now_ms):
            partition = self._hosted.get(proposal.partition)
            if partition is None:
                continue
            handle_answer(turn, partition, proposal, result)
            if result.error is ErrorCode.NONE and result.leader is None:
                acknowledged = _Acknowledged(proposal=proposal, controller_epoch=self._fence.controller_epoch)
                self._acknowledged[proposal.partition] = acknowledged

    def ask_successor(self, turn: Turn, partition: Partition) -> None:
        """Submits a change again that a former controller acknowledged but can no longer make (KIP-497).

        LeaderAndIsr of a later controller epoch proves that by its partition epoch, which is still the leader's own.
        In the KIP, the leader then checks its replicas again. Here it submits the same change, and keeps its maximal
        ISR until a newer partition epoch settles the change: a copy of the request may still be under way.
        """
        acknowledged = self._acknowledged.get(partition.name)
        if acknowledged is None or acknowledged.controller_epoch >= self._fence.controller_epoch:
            return
        del self._acknowledged[partition.name]
        if partition.isr_state is acknowledged.proposal.state:
            self.submit(turn, acknowledged.proposal)

    def handle_unreachable(self, turn: Turn) -> None:
        """Handles a request to the controller without an answer."""
        self._alter_partitions.failed(now_ms=turn.now_ms)

    # --- Time -----------------------------------------------------------------------------------------------------

    def handle_timer(self, turn: Turn) -> None:
        """Ends a backoff, and notifies the controller where that is due."""
        self._alter_partitions.handle_timer(now_ms=turn.now_ms)
        for timer in self.timers.pop_due(now_ms=turn.now_ms):
            self.timers.set(timer, at_ms=turn.now_ms + LOOK_INTERVAL_MS)
            if self._notifier is not None and self._notifier.is_due(now_ms=turn.now_ms):
                self.programs.append(_notified(self._notifier.pop_changes(now_ms=turn.now_ms)))


def _not_attempted(proposal: IsrProposal) -> messages.AlterPartitionResult:
    return messages.AlterPartitionResult(
        topic=proposal.partition.topic,
        topic_id=proposal.topic_id,
        partition=proposal.partition.partition,
        error=ErrorCode.OPERATION_NOT_ATTEMPTED,
    )


def _written(proposal: IsrProposal, program: operations.Program[NodeVersion | None]) -> operations.Program[IsrOutcome]:
    return IsrWritten(proposal, (yield from program))


def _notified(changed: frozenset[TopicPartition]) -> operations.Program[IsrOutcome]:
    yield from notify(changed)
    return Notified()
