"""Which premises a run has: computed once per run, while its files are read.

A check without its premise would find nothing whatever happened, so that its ``ok`` would prove nothing.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import msgspec

from emulator.core.events import (
    AlterPartitionDecided,
    AppendRole,
    BatchAppended,
    BecameLeader,
    BrokerFenced,
    BrokerRegistered,
    BrokerUnfenced,
    ClusterSettled,
    ConfigChanged,
    Election,
    Event,
    HighWatermarkAdvanced,
    LogOpened,
    LogTruncated,
    PartitionChanged,
    RecoveryStarted,
    TopicDeleted,
)
from emulator.core.history import FinalReadOperation, Operation, OperationType, PollOperation, SendOperation
from emulator.verification.check import Premise
from emulator.verification.log_reader import FinalBatch, FinalLog
from emulator.verification.timeline import Timeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ACKS_ALL: Final = -1
_UNCLEAN: Final = (Election.UNCLEAN, Election.LAST_KNOWN_LEADER)
_REASSIGNED: Final = "reassignment"

_COMMITTED: Final = (
    BrokerRegistered,
    BrokerFenced,
    BrokerUnfenced,
    TopicDeleted,
    ConfigChanged,
    PartitionChanged,
)

_Partition = tuple[str | None, int]
"""Topic id and number."""


class PremiseCensus:
    """Collects the premises of one run."""

    def __init__(self) -> None:
        self._seen: set[Premise] = set()
        self._committed_epoch: dict[_Partition, int] = {}
        self._leader_epoch: dict[_Partition, int] = {}
        self._controllers: set[tuple[int, int]] = set()
        self._acked: set[tuple[str, str, int]] = set()
        self._sent_after_ack: set[str] = set()
        self._received: set[tuple[str, str, int]] = set()
        self._replicas: dict[_Partition, set[int]] = {}

    def add_event(self, event: Event, *, node: int, incarnation: int) -> None:
        """Takes note of an event; a record that the controller writes down again is none."""
        match event:
            case BatchAppended():
                self._seen.add(Premise.STORED if event.role is AppendRole.LEADER else Premise.REPLICATED)
            case HighWatermarkAdvanced():
                self._seen.add(Premise.HIGH_WATERMARK_MOVED)
                key = (event.topic_id, event.partition)
                self._committed_epoch[key] = min(event.leader_epoch, self._committed_epoch.get(key, event.leader_epoch))
            case BecameLeader():
                self._seen.add(Premise.LED)
                key = (event.topic_id, event.partition)
                self._leader_epoch[key] = max(event.leader_epoch, self._leader_epoch.get(key, event.leader_epoch))
            case LogOpened():
                self._seen.add(Premise.LOG_OPENED)
            case LogTruncated():
                self._seen.add(Premise.TRUNCATED)
            case RecoveryStarted():
                self._seen.add(Premise.RECOVERY_STARTED)
            case AlterPartitionDecided(error="NONE"):
                self._seen.add(Premise.PROPOSAL_ACCEPTED)
            case ClusterSettled():
                self._seen.add(Premise.SETTLED)
            case _ if isinstance(event, _COMMITTED):
                self._controllers.add((node, incarnation))
            case _:
                pass

    def add_operation(self, operation: Operation, *, history: str) -> None:
        """Takes note of a line of a history file, in its order."""
        match operation:
            case SendOperation():
                self._add_send(operation, history)
            case PollOperation():
                key = (operation.process, operation.topic, operation.partition)
                if operation.phase == "live" and key in self._received:
                    self._seen.add(Premise.POLLED_AGAIN)
                if operation.batches:
                    self._received.add(key)
                    self._seen.add(Premise.CONSUMED)
                    if operation.leader_epoch is not None:
                        self._seen.add(Premise.CONSUMED_BY_EPOCH)
            case FinalReadOperation(type=OperationType.OK, start_offset=int() as start, end_offset=int() as end):
                if start < end:
                    self._seen.add(Premise.READ_AT_THE_END)
            case FinalReadOperation():
                pass

    def _add_send(self, send: SendOperation, history: str) -> None:
        key = (history, send.topic, send.partition)
        if send.type is OperationType.INVOKE:
            if key in self._acked:
                self._sent_after_ack.add(send.operation_id)
        elif send.type is OperationType.FAIL:
            self._seen.add(Premise.REFUSED)
        elif send.type is OperationType.OK and send.base_offset is not None and send.acks == _ACKS_ALL:
            if send.operation_id in self._sent_after_ack:
                self._seen.add(Premise.SENT_AFTER_ACK)
            self._acked.add(key)
            self._seen.add(Premise.ACKED_ALL)

    def add_final(self, found: FinalLog | FinalBatch) -> None:
        """Takes note of what a final log holds."""
        if isinstance(found, FinalLog):
            self._seen.add(Premise.FINAL_LOG)
        else:
            self._replicas.setdefault((found.topic_id, found.partition), set()).add(found.node)

    def premises(self, timeline: Timeline) -> frozenset[Premise]:
        """Returns what the run has; ``SETTLED_RECORDS`` and ``SETTLED_SEQUENCES`` are for ``settled_premises``."""
        found = {*self._seen, *_of_controller(timeline)}
        if len(self._controllers) > 1:
            found.add(Premise.TWO_CONTROLLERS)
        if any(len(nodes) > 1 for nodes in self._replicas.values()):
            found.add(Premise.FINAL_REPLICAS)
        if any(self._leader_epoch.get(key, epoch) > epoch for key, epoch in self._committed_epoch.items()):
            found.add(Premise.LED_AFTER_COMMIT)
        return frozenset(found)


def _of_controller(timeline: Timeline) -> Iterator[Premise]:
    registrations = list(timeline.of(BrokerRegistered))
    if len(registrations) > 1:
        yield Premise.TWO_REGISTRATIONS
    if any(
        r.stored_broker_epoch is not None and r.previous_broker_epoch != r.stored_broker_epoch for r in registrations
    ):
        yield Premise.UNCLEAN_REGISTRATION
    partitions: dict[_Partition, list[PartitionChanged]] = {}
    for change in sorted(timeline.of(PartitionChanged), key=lambda each: each.metadata_offset):
        partitions.setdefault((change.topic_id, change.partition), []).append(change)
    for changes in partitions.values():
        yield Premise.COMMITTED
        for change in changes:
            yield from _of_state(change)
        for before, after in pairwise(changes):
            yield Premise.CHANGED
            yield from _of_change(before, after)


def _of_state(change: PartitionChanged) -> Iterator[Premise]:
    if len(change.isr) < change.effective_min_isr:
        yield Premise.BELOW_MIN_ISR
    if change.elr or change.last_known_elr:
        yield Premise.ELR
    if change.adding_replicas or change.removing_replicas:
        yield Premise.REASSIGNMENT


def _of_change(before: PartitionChanged, after: PartitionChanged) -> Iterator[Premise]:
    if after.leader is not None and after.leader_epoch != before.leader_epoch and after.election is not Election.NONE:
        yield Premise.ELECTED
    if after.election in _UNCLEAN:
        yield Premise.UNCLEAN_ELECTION
    if set(after.isr) - set(before.isr):
        yield Premise.ISR_GREW
    was_moving = bool(before.adding_replicas or before.removing_replicas)
    if was_moving and not (after.adding_replicas or after.removing_replicas):
        yield Premise.REASSIGNMENT_CANCELLED if after.reason == _REASSIGNED else Premise.REASSIGNMENT_COMPLETED


class _Settled(msgspec.Struct, frozen=True, kw_only=True):
    run: int
    batches: int


_SETTLED: Final = """
    SELECT run, max(batches) AS batches
    FROM (SELECT f.run, IF(f.producer_id IS NULL, 1, count(*)) AS batches
          FROM final_batch f
          JOIN settled_leader s ON s.run = f.run AND s.topic_id = f.topic_id AND s.partition = f.partition
               AND s.leader = f.node
          WHERE NOT f.is_control
          GROUP BY f.run, f.topic_id, f.partition, f.producer_id, f.producer_epoch)
    GROUP BY run
"""


def settled_premises(spark: "SparkSession", *, runs: int) -> tuple[frozenset[Premise], ...]:
    """Returns, for each run, the premises that are about logs of settled leaders; needs the facts of the runs."""
    rows = (msgspec.convert(row.asDict(), _Settled) for row in spark.sql(_SETTLED).collect())
    batches = {row.run: row.batches for row in rows}
    return tuple(
        frozenset(
            premise
            for premise, least in ((Premise.SETTLED_RECORDS, 1), (Premise.SETTLED_SEQUENCES, 2))
            if batches.get(number, 0) >= least
        )
        for number in range(runs)
    )
