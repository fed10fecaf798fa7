"""Writes run directories by hand: event logs, history and real segment bytes, as a cluster would leave them.

Each verb does what it says to the log bytes *and* notes the event, so that a run is consistent until a test spoils it::

    run = RunBuilder(tmp_path / "store/story/1")
    run.start_brokers(0, 1, 2)
    run.create_topic("orders", replicas=(0, 1, 2))
    run.send("orders", leader=0, to=(0, 1, 2), records=10)
    run.finish()
"""

import json
import struct
from pathlib import Path
from typing import Final

import msgspec
from crc32c import crc32c

from laststand.emulator.core import events as e
from laststand.emulator.core.eras import era_rules, rule_texts
from laststand.emulator.core.history import MemberStep, OperationType
from laststand.emulator.core.quorum.batches import QuorumBatch
from laststand.emulator.core.switches import Switches, switch_texts
from laststand.emulator.core.types import (
    BrokerEpoch,
    BrokerId,
    BrokerState,
    CauseId,
    ChangeReason,
    ConfigResource,
    FenceReason,
    IncarnationId,
    LeaderEpoch,
    LeaderRecoveryState,
    MetadataOffset,
    NodeId,
    NodeRole,
    Offset,
    PartitionEpoch,
    ProducerEpoch,
    ProducerId,
    TopicId,
    TruncationReason,
)
from laststand.emulator.storage.metadata_log import log_content
from laststand.emulator.verification.facts.quorum import COMPARED, record_key
from tests.verification.resealing import reseal

TRANSACTIONS: Final = "__transaction_state"
POSITIONS: Final = "__consumer_offsets"
PAYMENTS: Final = {"transactional_id": "payments", "producer_id": 7, "producer_epoch": 0}
TRANSACTIONAL: Final = 0x10
_MARKER: Final = 0x30
"""Attributes of a batch of a transaction, and of the one that ends it (KIP-98)."""

CONTROLLER = 100
HARNESS = 1000
CAUSE = CauseId("test")
ON = switch_texts(Switches())


class Batch(msgspec.Struct, kw_only=True):
    """A batch in a log, with what a test may want to spoil."""

    base_offset: int
    leader_epoch: int
    record_count: int
    crc: int
    body: bytes
    sequence: int

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.record_count - 1

    def encode(self) -> bytes:
        head = struct.pack(">qiibI", self.base_offset, len(self.body) + 9, self.leader_epoch, 2, self.crc)
        return head + self.body


def _given(batch: Batch, position: int) -> dict[str, object]:
    """Returns the part of a batch that a consumer is given: all, or the rest from a position within."""
    skipped = position - batch.base_offset if batch.base_offset < position <= batch.last_offset else 0
    return {
        "base_offset": batch.base_offset + skipped,
        "last_offset": batch.last_offset,
        "leader_epoch": batch.leader_epoch,
        "crc": batch.crc,
        "producer": "producer-0",
        "first_record_id": batch.sequence * 1000 + skipped,
        "record_count": batch.record_count - skipped,
    }


class Partition(msgspec.Struct, kw_only=True):
    """The controller's view of a partition."""

    topic: str
    partition: int
    topic_id: str
    min_isr: int
    leader: int | None
    leader_epoch: int
    partition_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    last_known_leader: int | None = None
    recovery: LeaderRecoveryState = LeaderRecoveryState.RECOVERED
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()


_EXIT_CODES: Final = {e.IncarnationEnd.STOPPED: 0, e.IncarnationEnd.UNEXPECTED: 255}


def metadata_value(record: object, described: list[e.Event]) -> bytes:
    """Returns a value of a controller's log: of Kafka's part the version of the frame, and our own part."""
    own = msgspec.msgpack.encode([record, described])
    return b"\x01" + own + struct.pack(">i4s", len(own), b"LSTD")


class RunBuilder:
    """One run directory in the making."""

    def __init__(
        self,
        path: Path,
        *,
        era: str = "kip-966",
        switches: dict[str, str] | None = None,
        begin_s: float | None = None,
        tick_s: float = 0.0,
        metadata_in: NodeRole = NodeRole.CONTROLLER,
        driver: str | None = None,
        ending: str | None = None,
        own: dict[int, dict[str, str]] | None = None,
    ) -> None:
        self.path = path
        self.era = era
        self.driver = driver
        self.ending = ending
        self.report: str | None = None
        self.may_miss_steps = False
        self.switches = ON | (switches or {})
        self.own = dict(own or {})
        self.given = dict(own or {})
        self.files: dict[tuple[int, int], list[dict[str, object]]] = {}
        self.incarnations: dict[int, int] = {}
        self.running: set[int] = set()
        self.epochs: dict[int, int] = {}
        self.history: list[dict[str, object]] = []
        self.partitions: dict[tuple[str, int], Partition] = {}
        self.logs: dict[tuple[int, str, int], list[Batch]] = {}
        self.starts: dict[tuple[int, str, int], int] = {}
        self.killed: set[int] = set()
        self.high_watermarks: dict[tuple[str, int, int, int], int] = {}
        self.metadata_offset = 1 if metadata_in is NodeRole.ZOOKEEPER else 0  # a zxid is never 0
        self.records: dict[int, list[e.Event]] = {}
        self.voter_logs: dict[int, list[QuorumBatch]] = {}
        self.sent = 0
        self.time_ns = None if begin_s is None else round(begin_s * 1e9)
        self.tick_ns = round(tick_s * 1e9)
        self.positions: dict[tuple[str, str, int], int] = {}
        self.start(HARNESS, role="harness")
        self.start(CONTROLLER, role=metadata_in.value)

    # --- a quorum ------------------------------------------------------------------------------------------------

    def metadata_batches(self, *, leader_epoch: int = 1) -> list[QuorumBatch]:
        """Returns the batches of a metadata log that has every record so far."""
        return [
            QuorumBatch(
                base_offset=MetadataOffset(offset),
                leader_epoch=LeaderEpoch(leader_epoch),
                values=(metadata_value(None, noted),),
            )
            for offset, noted in sorted(self.records.items())
        ]

    def elect(self, node: int, *, quorum_epoch: int, end: int = 0) -> None:
        """A controller votes for itself and is elected."""
        disk = f"disk-{node}"
        self.vote(node, quorum_epoch=quorum_epoch)
        elected = e.QuorumLeaderElected(
            cause_id=CAUSE,
            directory_id=disk,
            quorum_epoch=LeaderEpoch(quorum_epoch),
            log_end_offset=MetadataOffset(end),
        )
        self.note(node, elected)

    def vote(self, node: int, *, quorum_epoch: int, candidate: int | None = None) -> None:
        """A controller votes, for itself if nobody else is named."""
        wanted = node if candidate is None else candidate
        voted = e.QuorumVoteGranted(
            cause_id=CAUSE,
            directory_id=f"disk-{node}",
            quorum_epoch=LeaderEpoch(quorum_epoch),
            candidate=NodeId(wanted),
            candidate_directory_id=f"disk-{wanted}",
        )
        self.note(node, voted)

    def commit_metadata(self, node: int, end: int, *, quorum_epoch: int = 1, is_leader: bool = False) -> None:
        """A controller hears of what is committed."""
        committed = e.MetadataCommittedUpTo(
            cause_id=CAUSE,
            directory_id=f"disk-{node}",
            quorum_epoch=LeaderEpoch(quorum_epoch),
            high_watermark=MetadataOffset(end),
            is_leader=is_leader,
        )
        self.note(node, committed)

    # --- nodes ---------------------------------------------------------------------------------------------------

    def note(self, node: int, event: e.Event) -> None:
        """Appends an event to the node's current file."""
        key = (node, self.incarnations[node])
        lines = self.files.setdefault(key, [])
        time_ns = len(lines) if self.time_ns is None else self.time_ns
        if self.time_ns is not None:
            self.time_ns += self.tick_ns
        if type(event) in COMPARED:
            self.records.setdefault(record_key(event)[0], []).append(event)
        envelope = {"run": "r", "node": node, "incarnation": key[1], "sequence": len(lines), "time_ns": time_ns}
        lines.append(envelope | msgspec.to_builtins(event))

    def at(self, seconds: float) -> None:
        """Sets the clock: all that follows happens then. Without it each file counts its lines."""
        self.time_ns = round(seconds * 1e9)

    def start(self, node: int, *, role: str = "broker") -> None:
        """Starts a process; the harness notes it, and the rules that it gives it, where they are its own."""
        self.incarnations[node] = self.incarnations.get(node, -1) + 1
        incarnation = self.incarnations[node]
        self.running.add(node)
        if node != HARNESS:
            name = f"{node}-{incarnation}.jsonl"
            started = e.IncarnationStarted(
                cause_id=CAUSE,
                started_node=NodeId(node),
                started_incarnation=incarnation,
                event_file=name,
                switches=self.switches | self.given[node] if node in self.given else {},
            )
            self.note(HARNESS, started)
        self.note(
            node,
            e.NodeStarted(
                cause_id=CAUSE,
                role=NodeRole(role),
                incarnation_id=IncarnationId(f"i{node}-{incarnation}"),
                switches=self.switches | self.own.get(node, {}),
                properties={} if role == "harness" else {"min.insync.replicas": "2"},
                wall_time_ns=0,
                driver=self.driver if role == "harness" else None,
                ending=self.ending if role == "harness" else None,
            ),
        )

    def end(self, node: int, how: e.IncarnationEnd, *, by_signal: bool = False) -> None:
        """Ends a process; by a signal, where a step sent one or ``by_signal`` says so."""
        if how is e.IncarnationEnd.STOPPED:
            self.note(node, e.NodeStopped(cause_id=CAUSE))
        else:
            self.killed.add(node)
        self.running.discard(node)
        self.note(
            HARNESS,
            e.IncarnationEnded(
                cause_id=CAUSE,
                ended_node=NodeId(node),
                ended_incarnation=self.incarnations[node],
                end=how,
                exit_code=None if by_signal else _EXIT_CODES.get(how),
                metadata_offset=MetadataOffset(self.metadata_offset),
            ),
        )

    def register(self, node: int, *, clean: bool = True, epoch: int | None = None, hears: bool = True) -> None:
        """Registers the node's current incarnation, which hears of that."""
        stored = self.epochs.get(node)
        self.epochs[node] = self.metadata_offset if epoch is None else epoch
        self.note(
            CONTROLLER,
            e.BrokerRegistered(
                cause_id=CAUSE,
                metadata_offset=self._next(),
                broker_id=BrokerId(NodeId(node)),
                broker_epoch=BrokerEpoch(self.epochs[node]),
                incarnation_id=IncarnationId(f"i{node}-{self.incarnations[node]}"),
                previous_broker_epoch=None if stored is None or not clean else BrokerEpoch(stored),
                stored_broker_epoch=None if stored is None else BrokerEpoch(stored),
                is_clean=clean or stored is None,
            ),
        )
        if hears:
            known = e.BrokerStateChanged(
                cause_id=CAUSE,
                old=BrokerState.STARTING,
                new=BrokerState.RECOVERY,
                broker_epoch=BrokerEpoch(self.epochs[node]),
            )
            self.note(node, known)

    def unfence(self, node: int) -> None:
        self.note(
            CONTROLLER,
            e.BrokerUnfenced(
                cause_id=CAUSE,
                metadata_offset=self._next(),
                broker_id=BrokerId(NodeId(node)),
                broker_epoch=BrokerEpoch(self.epochs[node]),
            ),
        )

    def fence(self, node: int, *, reason: str = "session_expired") -> None:
        self.note(
            CONTROLLER,
            e.BrokerFenced(
                cause_id=CAUSE,
                metadata_offset=self._next(),
                broker_id=BrokerId(NodeId(node)),
                broker_epoch=BrokerEpoch(self.epochs[node]),
                reason=FenceReason(reason),
            ),
        )

    def start_brokers(self, *nodes: int) -> "RunBuilder":
        """Starts, registers and unfences brokers."""
        for node in nodes:
            self.start(node)
            self.register(node)
            self.unfence(node)
        return self

    def fault(
        self,
        name: str,
        target: str,
        *,
        effect: str | None = "probe timed out",
        begun_s: float | None = None,
        committed: int | None = None,
    ) -> None:
        """A fault is injected, at ``committed`` if the harness knows where committed metadata ends."""
        begun_ns = None if begun_s is None else round(begun_s * 1e9)
        nodes, links = _targets(target)
        self.note(
            HARNESS,
            e.FaultInjected(
                cause_id=CAUSE,
                fault=name,
                target=target,
                nodes=nodes,
                links=links,
                effect=effect,
                metadata_offset=None if committed is None else MetadataOffset(committed),
                begun_ns=begun_ns,
            ),
        )

    def settle(self, *, behind: tuple[int, ...] = ()) -> None:
        """The cluster settles, and every broker that runs knows all metadata but those that are ``behind``."""
        end_offset = MetadataOffset(self.metadata_offset)
        for node in sorted(self.running - {HARNESS, CONTROLLER, *behind}):
            self.note(node, e.MetadataApplied(cause_id=CAUSE, start_offset=MetadataOffset(0), end_offset=end_offset))
        self.note(HARNESS, e.ClusterSettled(cause_id=CAUSE, metadata_offset=MetadataOffset(self.metadata_offset)))

    def heal(self, name: str, target: str, *, committed: int | None = None) -> None:
        """A fault is healed, at ``committed`` if the harness knows where committed metadata ends."""
        offset = None if committed is None else MetadataOffset(committed)
        nodes, links = _targets(target)
        healed = e.FaultHealed(
            cause_id=CAUSE,
            fault=name,
            target=target,
            nodes=nodes,
            links=links,
            seen="probe succeeded",
            metadata_offset=offset,
        )
        self.note(HARNESS, healed)

    def power_loss(self, node: int, *, keep: int = 0) -> None:
        """Kills the node; its logs keep what is below offset ``keep``."""
        self.end(node, e.IncarnationEnd.POWER_LOST)
        for (owner, topic, number), log in sorted(self.logs.items()):
            if owner != node:
                continue
            partition = self.partitions[topic, number]
            before = _end(log)
            log[:] = [batch for batch in log if batch.last_offset < keep]
            self.note(
                HARNESS,
                e.PowerLost(
                    cause_id=CAUSE,
                    topic=topic,
                    partition=number,
                    topic_id=TopicId(partition.topic_id),
                    lost_node=NodeId(node),
                    lost_incarnation=self.incarnations[node],
                    keep="none",
                    old_end_offset=Offset(before),
                    new_end_offset=Offset(_end(log)),
                ),
            )

    def damage(self, node: int, topic: str = "orders", partition: int = 0) -> Batch:
        """Flips a bit of the last batch in a node's log; returns the batch as it is there now."""
        log = self.logs[node, topic, partition]
        batch = log[-1]
        damaged = msgspec.structs.replace(batch, body=batch.body[:-1] + bytes([batch.body[-1] ^ 1]))
        self.note(
            HARNESS,
            e.BitFlipped(
                cause_id=CAUSE,
                topic=topic,
                partition=partition,
                topic_id=TopicId(self.partitions[topic, partition].topic_id),
                flipped_node=NodeId(node),
                base_offset=Offset(batch.base_offset),
                last_offset=Offset(batch.last_offset),
                leader_epoch=LeaderEpoch(batch.leader_epoch),
                crc=batch.crc,
                damaged_crc=crc32c(damaged.body),
            ),
        )
        log[-1] = damaged
        return damaged

    # --- partitions ----------------------------------------------------------------------------------------------

    def create_topic(
        self,
        topic: str = "orders",
        *,
        replicas: tuple[int, ...] = (0, 1, 2),
        min_isr: int = 2,
        partition: int = 0,
        topic_id: str | None = None,
    ) -> Partition:
        """Creates a partition led by its first replica."""
        state = Partition(
            topic=topic,
            partition=partition,
            topic_id=f"{topic}-id" if topic_id is None else topic_id,
            min_isr=min_isr,
            leader=replicas[0],
            leader_epoch=0,
            partition_epoch=0,
            replicas=replicas,
            isr=replicas,
        )
        self.partitions[topic, partition] = state
        if min_isr != 2:
            self.configure(topic, "min.insync.replicas", str(min_isr))
        self.changed(topic, partition, reason="created", election=e.Election.NONE)
        for replica in replicas:
            self.logs[replica, topic, partition] = []
            self.open(replica, topic, partition)
        self.lead(topic, partition)
        return state

    def configure(self, topic: str, name: str, value: str) -> None:
        """The controller commits a topic's configuration."""
        self.note(
            CONTROLLER,
            e.ConfigChanged(
                cause_id=CAUSE,
                metadata_offset=self._next(),
                resource=ConfigResource.TOPIC,
                resource_name=topic,
                name=name,
                value=value,
            ),
        )

    def step(
        self, text: str, *, unclean: tuple[str, ...] = (), deletions: tuple[e.RequestedDeletion, ...] = ()
    ) -> None:
        """The harness notes that a step of the plan is done, which asked for leaders of ``unclean`` and deletions."""
        step = e.StepReached(
            cause_id=CAUSE, step=1, text=text, seen="done", unclean_elections=unclean, deletions=deletions
        )
        self.note(HARNESS, step)

    def relay(
        self, node: int, *, unclean: tuple[str, ...] = (), deletions: tuple[e.RequestedDeletion, ...] = ()
    ) -> None:
        """A broker notes that it passes on an order of a client of Kafka, by the metadata of this moment."""
        order = e.OrderRelayed(
            cause_id=CAUSE,
            client="kafka:tool@0-0.1",
            given_to=NodeId(node),
            api="any",
            order="",
            metadata_offset=MetadataOffset(self.metadata_offset),
            unclean_elections=unclean,
            deletions=deletions,
        )
        self.note(node, order)

    def changed(
        self,
        topic: str = "orders",
        partition: int = 0,
        *,
        reason: str,
        election: e.Election = e.Election.NONE,
        broker: int | None = None,
        effective_min_isr: int | None = None,
    ) -> None:
        """Notes the partition's present state as committed."""
        p = self.partitions[topic, partition]
        self.note(
            CONTROLLER,
            e.PartitionChanged(
                cause_id=CAUSE,
                topic=topic,
                partition=partition,
                topic_id=TopicId(p.topic_id),
                metadata_offset=self._next(),
                reason=ChangeReason(reason),
                election=election,
                broker_id=_broker(broker),
                effective_min_isr=p.min_isr if effective_min_isr is None else effective_min_isr,
                leader=_broker(p.leader),
                leader_epoch=LeaderEpoch(p.leader_epoch),
                partition_epoch=PartitionEpoch(p.partition_epoch),
                replicas=_brokers(p.replicas),
                isr=_brokers(p.isr),
                elr=_brokers(p.elr),
                last_known_elr=_brokers(p.last_known_elr),
                last_known_leader=_broker(p.last_known_leader),
                leader_recovery_state=p.recovery,
                adding_replicas=_brokers(p.adding),
                removing_replicas=_brokers(p.removing),
            ),
        )

    def alter(
        self,
        topic: str = "orders",
        partition: int = 0,
        *,
        reason: str,
        broker: int | None = None,
        leader: int | str | None = "same",
        election: e.Election = e.Election.NONE,
        isr: tuple[int, ...] | None = None,
        elr: tuple[int, ...] | None = None,
        last_known_leader: int | None = None,
        replicas: tuple[int, ...] | None = None,
        adding: tuple[int, ...] = (),
        removing: tuple[int, ...] = (),
        recovery: LeaderRecoveryState | None = None,
        effective_min_isr: int | None = None,
    ) -> None:
        """Commits a change, with the epochs that belong to it; a new leader takes over at once."""
        p = self.partitions[topic, partition]
        p.partition_epoch += 1
        p.isr = p.isr if isr is None else isr
        p.elr = p.elr if elr is None else elr
        p.last_known_leader = last_known_leader
        p.replicas = p.replicas if replicas is None else replicas
        p.adding, p.removing = adding, removing
        p.recovery = p.recovery if recovery is None else recovery
        if not isinstance(leader, str):
            p.leader = leader
            p.leader_epoch += 1
        self.changed(
            topic, partition, reason=reason, election=election, broker=broker, effective_min_isr=effective_min_isr
        )
        if not isinstance(leader, str) and leader is not None:
            self.lead(topic, partition)

    def expand(self, isr: tuple[int, ...], topic: str = "orders", partition: int = 0) -> None:
        """The leader's AlterPartition to ``isr`` is accepted."""
        p = self.partitions[topic, partition]
        self.accept(isr, topic, partition)
        elr = p.elr if len(isr) < p.min_isr else ()
        recovered = LeaderRecoveryState.RECOVERED
        self.alter(topic, partition, reason="alter_partition", broker=p.leader, isr=isr, elr=elr, recovery=recovered)

    def accept(
        self,
        isr: tuple[int, ...],
        topic: str = "orders",
        partition: int = 0,
        *,
        sender: int | None = None,
        epochs: dict[int, int] | None = None,
    ) -> None:
        """The controller says yes to an AlterPartition, by default the leader's with the right broker epochs."""
        p = self.partitions[topic, partition]
        assert p.leader is not None
        leader = p.leader if sender is None else sender
        known = self.epochs | (epochs or {})
        self.note(
            CONTROLLER,
            e.AlterPartitionDecided(
                cause_id=CAUSE,
                topic=topic,
                partition=partition,
                topic_id=TopicId(p.topic_id),
                broker_id=BrokerId(NodeId(leader)),
                broker_epoch=BrokerEpoch(self.epochs[leader]),
                leader_epoch=LeaderEpoch(p.leader_epoch),
                partition_epoch=PartitionEpoch(p.partition_epoch),
                proposed_isr=_brokers(isr),
                broker_epochs=tuple(BrokerEpoch(known[b]) for b in isr),
                error="NONE",
            ),
        )

    def lead(self, topic: str = "orders", partition: int = 0) -> None:
        """The leader takes over; running replicas follow it."""
        p = self.partitions[topic, partition]
        assert p.leader is not None
        self.note(
            p.leader,
            e.MetadataApplied(
                cause_id=CAUSE, start_offset=MetadataOffset(0), end_offset=MetadataOffset(self.metadata_offset)
            ),
        )
        self.note(
            p.leader,
            e.BecameLeader(
                cause_id=CAUSE,
                topic=topic,
                partition=partition,
                topic_id=TopicId(p.topic_id),
                leader_epoch=LeaderEpoch(p.leader_epoch),
                partition_epoch=PartitionEpoch(p.partition_epoch),
                epoch_start_offset=Offset(self.end_of(p.leader, topic, partition)),
                high_watermark=Offset(0),
                isr=_brokers(p.isr),
            ),
        )

    def follow_leader(self, node: int, topic: str = "orders", partition: int = 0) -> None:
        """A replica follows the leader, with whatever log it has."""
        p = self.partitions[topic, partition]
        self.note(
            node,
            e.BecameFollower(
                cause_id=CAUSE,
                topic=topic,
                partition=partition,
                topic_id=TopicId(p.topic_id),
                leader=_broker(p.leader),
                leader_epoch=LeaderEpoch(p.leader_epoch),
                partition_epoch=PartitionEpoch(p.partition_epoch),
                log_end_offset=Offset(self.end_of(node, topic, partition)),
                high_watermark=Offset(0),
            ),
        )

    def open(self, node: int, topic: str = "orders", partition: int = 0) -> None:
        log = self.logs[node, topic, partition]
        self.note(
            node,
            e.LogOpened(
                cause_id=CAUSE,
                topic=topic,
                partition=partition,
                topic_id=TopicId(self.partitions[topic, partition].topic_id),
                is_clean=not log,
                log_start_offset=Offset(0),
                log_end_offset=Offset(_end(log)),
                high_watermark=Offset(0),
                recovery_point=Offset(0),
                epochs=_epochs(log),
            ),
        )

    def restart(self, node: int, *, clean: bool = False) -> None:
        """Starts a node again, registers it and opens its logs; still fenced."""
        self.start(node)
        self.register(node, clean=clean)
        for owner, topic, partition in sorted(self.logs):
            if owner == node:
                self.open(node, topic, partition)

    def truncate(
        self, node: int, to: int, topic: str = "orders", partition: int = 0, *, reason: str = "diverging_epoch"
    ) -> None:
        p = self.partitions[topic, partition]
        log = self.logs[node, topic, partition]
        before = _end(log)
        log[:] = [batch for batch in log if batch.last_offset < to and reason != "restarted"]
        if reason == "restarted":
            self.starts[node, topic, partition] = to
        self.note(
            node,
            e.LogTruncated(
                cause_id=CauseId(f"fetch-{node}-{before}"),
                topic=topic,
                partition=partition,
                topic_id=TopicId(p.topic_id),
                reason=TruncationReason(reason),
                old_end_offset=Offset(before),
                new_end_offset=Offset(to),
                high_watermark=Offset(to),
                leader=_broker(p.leader),
                leader_epoch=LeaderEpoch(p.leader_epoch),
            ),
        )

    def end_of(self, node: int, topic: str = "orders", partition: int = 0) -> int:
        """Returns where a log ends; one of which everything was deleted ends where it starts."""
        key = (node, topic, partition)
        return max(_end(self.logs[key]), self.starts.get(key, 0))

    def delete(self, node: int, below: int, topic: str = "orders", partition: int = 0) -> None:
        """A node raises its log start, and drops what lies before it."""
        key = (node, topic, partition)
        old, self.starts[key] = self.starts.get(key, 0), below
        self.logs[key][:] = [batch for batch in self.logs[key] if batch.last_offset >= below]
        self.note(
            node,
            e.LogStartOffsetRaised(
                cause_id=CAUSE,
                topic=topic,
                partition=partition,
                topic_id=TopicId(self.partitions[topic, partition].topic_id),
                old=Offset(old),
                new=Offset(below),
            ),
        )

    # --- records -------------------------------------------------------------------------------------------------

    def append(
        self, node: int, batch: Batch, topic: str = "orders", partition: int = 0, *, leader: bool = False
    ) -> None:
        """Puts a batch into a node's log."""
        p = self.partitions[topic, partition]
        self.logs[node, topic, partition].append(batch)
        self.note(
            node,
            e.BatchAppended(
                cause_id=CauseId(f"send-{self.sent}" if leader else f"fetch-{node}-{self.sent}"),
                topic=topic,
                partition=partition,
                topic_id=TopicId(p.topic_id),
                role=e.AppendRole.LEADER if leader else e.AppendRole.FOLLOWER,
                base_offset=Offset(batch.base_offset),
                last_offset=Offset(batch.last_offset),
                leader_epoch=LeaderEpoch(batch.leader_epoch),
                current_leader_epoch=LeaderEpoch(p.leader_epoch),
                crc=batch.crc,
                record_count=batch.record_count,
                producer_id=ProducerId(7),
                producer_epoch=ProducerEpoch(0),
                base_sequence=batch.sequence,
            ),
        )

    def new_batch(
        self,
        topic: str = "orders",
        partition: int = 0,
        *,
        records: int = 10,
        producer_id: int = 7,
        attributes: int = 0,
    ) -> Batch:
        """A batch for the end of the leader's log."""
        p = self.partitions[topic, partition]
        assert p.leader is not None
        self.sent += 1
        body = (
            struct.pack(">hiqqqhii", attributes, records - 1, 0, 0, producer_id, 0, self.sent, records)
            + b"%06d" % self.sent
        )
        return Batch(
            base_offset=self.end_of(p.leader, topic, partition),
            leader_epoch=p.leader_epoch,
            record_count=records,
            crc=crc32c(body),
            body=body,
            sequence=self.sent,
        )

    def send(
        self,
        topic: str = "orders",
        partition: int = 0,
        *,
        to: tuple[int, ...] | None = None,
        records: int = 10,
        acks: int = -1,
        outcome: OperationType = OperationType.OK,
        begun_s: float | None = None,
        attributes: int = 0,
        process: str = "producer-0",
    ) -> Batch:
        """A producer sends a batch, the leader and ``to`` (default: the ISR) append it, and it is answered."""
        p = self.partitions[topic, partition]
        assert p.leader is not None
        batch = self.new_batch(topic, partition, records=records, attributes=attributes)
        for node in p.isr if to is None else to:
            self.append(node, batch, topic, partition, leader=node == p.leader)
        if acks != 0 and outcome is OperationType.OK:
            self.answer(batch, topic, partition, acks=acks)
        self.operate(batch, topic, partition, acks=acks, outcome=outcome, begun_s=begun_s, process=process)
        return batch

    def end_transaction(
        self,
        topic: str = "orders",
        partition: int = 0,
        *,
        commits: bool,
        producer_epoch: int = 0,
        coordinator_epoch: int = 0,
    ) -> Batch:
        """A coordinator ends the transaction of the producer in one partition."""
        p = self.partitions[topic, partition]
        assert p.leader is not None
        head = struct.pack(">hiqqqhii", _MARKER, 0, 0, 0, 7, producer_epoch, -1, 1)
        value = struct.pack(">hhBhi", 0, commits, 12, 0, coordinator_epoch)
        body = head + bytes((32, 0, 0, 0, 8)) + value + b"\0"
        marker = Batch(
            base_offset=self.end_of(p.leader, topic, partition),
            leader_epoch=p.leader_epoch,
            record_count=1,
            crc=crc32c(body),
            body=body,
            sequence=-1,
        )
        for node in p.isr:
            self.append(node, marker, topic, partition, leader=node == p.leader)
        self.advance(marker.last_offset + 1, topic, partition)
        for follower in p.isr:
            if follower != p.leader:
                self.follow(follower, marker.last_offset + 1, topic, partition)
        return marker

    # --- Coordinators ---------------------------------------------------------------------------------------------

    def write_own(self, topic: str, *, is_committed: bool = True) -> int:
        """The leader of an internal topic appends a record of its own; returns its offset."""
        p = self.partitions[topic, 0]
        batch = self.new_batch(topic, records=1)
        for node in p.isr:
            self.append(node, batch, topic, leader=node == p.leader)
        if is_committed:
            self.commit_own(topic)
        return batch.base_offset

    def commit_own(self, topic: str) -> None:
        """All that an internal topic has is committed."""
        p = self.partitions[topic, 0]
        assert p.leader is not None
        end = self.end_of(p.leader, topic)
        self.advance(end, topic)
        for follower in p.isr:
            if follower != p.leader:
                self.follow(follower, end, topic)

    def note_own(self, kind: type[e.PartitionEvent], topic: str, **fields: object) -> None:
        """The leader of an internal topic, as its coordinator, records an event."""
        p = self.partitions[topic, 0]
        assert p.leader is not None
        place = {"topic": topic, "partition": 0, "topic_id": TopicId(p.topic_id), "leader_epoch": p.leader_epoch}
        self.note(p.leader, kind(cause_id=CAUSE, **place, **fields))  # type: ignore[arg-type]  # fields of the kind

    def begin_transition(self, old: str, new: str, *, partitions: tuple[str, ...] = ("orders-0",)) -> None:
        """A coordinator begins to have ``payments`` go from one state to another."""
        leader = self.partitions[TRANSACTIONS, 0].leader
        assert leader is not None
        self.note_own(
            e.TransitionBegun,
            TRANSACTIONS,
            **PAYMENTS,
            old=old,
            new=new,
            partitions=partitions,
            offset=self.end_of(leader, TRANSACTIONS),
        )

    def end_transition(self, *, error: str = "NONE") -> None:
        """The transition takes effect, or is given up."""
        self.note_own(e.TransitionEnded, TRANSACTIONS, transactional_id="payments", error=error)

    def transit(self, old: str, new: str) -> int:
        """``payments`` goes from one state to another; returns the offset of the record."""
        self.begin_transition(old, new)
        offset = self.write_own(TRANSACTIONS)
        self.end_transition()
        return offset

    def send_markers(self, *, decided_at: int) -> None:
        """A coordinator begins to have a committed transaction's markers written."""
        self.note_own(
            e.MarkersSent, TRANSACTIONS, **PAYMENTS, result="commit", partitions=("orders-0",), decided_at=decided_at
        )

    def return_position(self, *, counts_from: int) -> None:
        """A coordinator returns the position of the group ``readers``."""
        self.note_own(
            e.PositionReturned,
            POSITIONS,
            group_id="readers",
            source="orders-0",
            position=10,
            counts_from=counts_from,
        )

    # --- Clients --------------------------------------------------------------------------------------------------

    def session(self, *, epoch: int) -> None:
        """The transactional producer is given an identity."""
        self.record(
            {
                "f": "session",
                "process": "producer-0",
                "transactional_id": "payments",
                "producer_id": 7,
                "producer_epoch": epoch,
            }
        )

    def transaction(
        self,
        sends: list[Batch],
        *,
        result: str,
        outcome: OperationType = OperationType.OK,
        operation: str | None = None,
    ) -> None:
        """Writes the last line of a transaction."""
        self.record(
            {
                "f": "transaction",
                "type": outcome.value,
                "process": "producer-0",
                "operation_id": operation or f"transaction-{len(self.history)}",
                "transactional_id": "payments",
                "result": result,
                "sends": [f"send-{batch.sequence}" for batch in sends],
                "error": None,
            }
        )

    def read_for_group(
        self,
        batches: list[Batch],
        group: str,
        *,
        committed: int | None,
        position: int = 0,
        operation: str,
        commit: OperationType = OperationType.OK,
    ) -> None:
        """A client reads batches of ``orders`` for a group, and commits the position behind them."""
        p = self.partitions["orders", 0]
        next_position = batches[-1].last_offset + 1 if batches else position
        place: dict[str, object] = {"process": "producer-0", "operation_id": operation, "group_id": group}
        self.record(
            {
                **place,
                "f": "group_read",
                "topic": "orders",
                "topic_id": p.topic_id,
                "partition": 0,
                "node": p.leader or 0,
                "committed": committed,
                "position": position,
                "next_position": next_position,
                "batches": [_given(batch, batch.base_offset) for batch in batches],
            }
        )
        if batches:
            outcome = {"f": "group_commit", "type": commit.value, "topic": "orders", "partition": 0}
            self.record({**place, **outcome, "offset": next_position, "error": None})

    def member(
        self,
        process: str,
        step: MemberStep,
        *,
        generation: int = -1,
        partitions: tuple[str, ...] = (),
        overdue_ms: int = 0,
    ) -> None:
        """A member of the group ``readers`` reaches a step."""
        self.record(
            {
                "f": "group_member",
                "process": process,
                "group_id": "readers",
                "step": step.value,
                "member_id": process,
                "instance_id": None,
                "generation_id": generation,
                "partitions": list(partitions),
                "overdue_ms": overdue_ms,
            }
        )

    def member_reads(self, process: str, generation: int, batch: Batch, *, committed: int | None) -> None:
        """A member of the group ``readers`` reads a batch of ``orders``, and commits the position behind it."""
        operation = f"{process}:{len(self.history)}"
        p = self.partitions["orders", 0]
        self.record(
            {
                "f": "group_read",
                "process": process,
                "operation_id": operation,
                "group_id": "readers",
                "topic": "orders",
                "topic_id": p.topic_id,
                "partition": 0,
                "node": p.leader or 0,
                "committed": committed,
                "position": batch.base_offset,
                "next_position": batch.last_offset + 1,
                "batches": [_given(batch, batch.base_offset)],
                "member_id": process,
                "generation_id": generation,
            }
        )
        self.record(
            {
                "f": "group_commit",
                "type": "ok",
                "process": process,
                "operation_id": operation,
                "group_id": "readers",
                "topic": "orders",
                "partition": 0,
                "offset": batch.last_offset + 1,
                "error": None,
                "member_id": process,
                "generation_id": generation,
            }
        )

    def group_position(
        self,
        kind: str,
        offset: int | None,
        *,
        node: int = 0,
        outcome: OperationType = OperationType.OK,
        begun_ns: int | None = None,
    ) -> None:
        """A coordinator commits a position of a group, or gives it; begun after the line before, if not said."""
        now_ns = len(self.history) if self.time_ns is None else self.time_ns
        self.record(
            {
                "f": "group_position",
                "type": outcome.value,
                "process": "kafka:shop@1000->0-0.1",
                "operation_id": f"position-{len(self.history)}",
                "kind": kind,
                "group_id": "shop",
                "topic": "orders",
                "topic_id": self.partitions["orders", 0].topic_id,
                "partition": 0,
                "node": node,
                "offset": offset,
                "begun_ns": now_ns if begun_ns is None else begun_ns,
                "error": None,
            }
        )

    def read_committed(
        self,
        batches: list[Batch],
        topic: str = "orders",
        partition: int = 0,
        *,
        position: int,
        next_position: int,
        stable_to: int | None = None,
        log_start_offset: int = 0,
    ) -> None:
        """A reader of committed records is given batches; the high watermark is said to be the next position."""
        p = self.partitions[topic, partition]
        self.record(
            {
                "f": "committed_read",
                "process": "reader-0",
                "operation_id": f"read-{len(self.history)}",
                "topic": topic,
                "topic_id": p.topic_id,
                "partition": partition,
                "node": p.leader or 0,
                "position": position,
                "next_position": next_position,
                "seek": False,
                "batches": [_given(batch, batch.base_offset) for batch in batches],
                "high_watermark": next_position,
                "last_stable_offset": stable_to,
                "log_start_offset": log_start_offset,
            }
        )

    def answer(self, batch: Batch, topic: str = "orders", partition: int = 0, *, acks: int = -1) -> None:
        p = self.partitions[topic, partition]
        assert p.leader is not None
        if acks == -1:
            self.advance(batch.last_offset + 1, topic, partition)
            for follower in p.isr:
                if follower != p.leader:
                    self.follow(follower, batch.last_offset + 1, topic, partition)
        self.note(
            p.leader,
            e.ProduceAnswered(
                cause_id=CauseId(f"send-{self.sent}"),
                topic=topic,
                partition=partition,
                topic_id=TopicId(p.topic_id),
                acks=acks,
                error="NONE",
                base_offset=Offset(batch.base_offset),
                record_count=batch.record_count,
                high_watermark=Offset(batch.base_offset),
                committed_isr=_brokers(p.isr),
                leader_epoch=LeaderEpoch(p.leader_epoch),
            ),
        )

    def advance(
        self,
        new: int,
        topic: str = "orders",
        partition: int = 0,
        *,
        old: int | None = None,
        isr: tuple[int, ...] | None = None,
        effective_min_isr: int | None = None,
        leader_epoch: int | None = None,
        learned_in: int | None = None,
    ) -> None:
        """The leader's high watermark rises, by log ends that it learned in an earlier epoch where one is given."""
        p = self.partitions[topic, partition]
        assert p.leader is not None
        log_end = self.end_of(p.leader, topic, partition)
        term = (topic, partition, p.leader, p.leader_epoch)
        before = self.high_watermarks.get(term, 0)
        self.high_watermarks[term] = new
        members = _brokers(p.isr if isr is None else isr)
        self.note(
            p.leader,
            e.HighWatermarkAdvanced(
                cause_id=CAUSE,
                topic=topic,
                partition=partition,
                topic_id=TopicId(p.topic_id),
                old=Offset(before if old is None else old),
                new=Offset(new),
                leader_epoch=LeaderEpoch(p.leader_epoch if leader_epoch is None else leader_epoch),
                log_end_offset=Offset(log_end),
                committed_isr=members,
                maximal_isr=members,
                joiners=(),
                effective_min_isr=p.min_isr if effective_min_isr is None else effective_min_isr,
                replicas=tuple(
                    e.ReplicaProgress(
                        b, Offset(log_end), LeaderEpoch(p.leader_epoch if learned_in is None else learned_in)
                    )
                    for b in members
                ),
            ),
        )

    def follow(self, node: int, high_watermark: int, topic: str = "orders", partition: int = 0) -> None:
        """A follower takes over its leader's high watermark."""
        p = self.partitions[topic, partition]
        self.note(
            node,
            e.FollowerHighWatermarkUpdated(
                cause_id=CAUSE,
                topic=topic,
                partition=partition,
                topic_id=TopicId(p.topic_id),
                old=Offset(0),
                new=Offset(high_watermark),
                log_end_offset=Offset(self.end_of(node, topic, partition)),
                leader_epoch=LeaderEpoch(p.leader_epoch),
            ),
        )

    def operate(
        self,
        batch: Batch,
        topic: str = "orders",
        partition: int = 0,
        *,
        acks: int = -1,
        outcome: OperationType = OperationType.OK,
        begun_s: float | None = None,
        process: str = "producer-0",
        operation_id: str | None = None,
    ) -> None:
        """Writes both lines of a send, the first with an earlier time where one is given."""
        p = self.partitions[topic, partition]
        common: dict[str, object] = {
            "f": "send",
            "process": process,
            "operation_id": operation_id or f"send-{batch.sequence}",
            "topic": topic,
            "topic_id": p.topic_id,
            "partition": partition,
            "acks": acks,
            "first_record_id": batch.sequence * 1000,
            "record_count": batch.record_count,
        }
        attempt = {
            "node": p.leader,
            "leader_epoch": p.leader_epoch,
            "producer_id": 7,
            "producer_epoch": 0,
            "base_sequence": batch.sequence,
            "crc": batch.crc,
            "outcome": "NONE" if outcome is OperationType.OK else "REQUEST_TIMED_OUT",
        }
        begun = {} if begun_s is None else {"time_ns": round(begun_s * 1e9)}
        self.record(common | begun | {"type": "invoke", "base_offset": None, "attempts": [], "error": None})
        base = batch.base_offset if outcome is OperationType.OK and acks != 0 else None
        self.record(common | {"type": outcome.value, "base_offset": base, "attempts": [attempt], "error": None})

    def record(self, line: dict[str, object]) -> None:
        """Appends a line to the history."""
        time_ns = len(self.history) if self.time_ns is None else self.time_ns
        self.history.append({"index": len(self.history), "time_ns": time_ns, **line})

    def poll(
        self,
        batches: list[Batch],
        topic: str = "orders",
        partition: int = 0,
        *,
        process: str = "consumer-0",
        phase: str = "live",
        position: int | None = None,
        seek: bool = False,
        error: str | None = None,
    ) -> None:
        """A consumer receives batches, by default from where it stopped."""
        p = self.partitions[topic, partition]
        key = (process, topic, partition)
        at = self.positions.get(key, 0) if position is None else position
        self.positions[key] = batches[-1].last_offset + 1 if batches else at
        self.record(
            {
                "type": "ok" if error is None else "info",
                "f": "poll",
                "process": process,
                "operation_id": f"poll-{len(self.history)}",
                "phase": phase,
                "topic": topic,
                "topic_id": p.topic_id,
                "partition": partition,
                "node": p.leader or 0,
                "position": at,
                "seek": seek,
                "high_watermark": None,
                "log_start_offset": 0,
                "batches": [_given(b, at) for b in batches],
                "error": error,
                "leader_epoch": p.leader_epoch,
            }
        )

    def final_read(
        self, topic: str, partition: int, *, end_offset: int | None, start_offset: int = 0, error: str | None = None
    ) -> None:
        p = self.partitions[topic, partition]
        self.record(
            {
                "type": "ok" if error is None else "info",
                "f": "final_read",
                "process": "final",
                "operation_id": f"final-{topic}-{partition}",
                "topic": topic,
                "topic_id": p.topic_id,
                "partition": partition,
                "start_offset": start_offset if end_offset is not None else None,
                "end_offset": end_offset,
                "error": error,
            }
        )

    # --- the end -------------------------------------------------------------------------------------------------

    def read_all(self) -> None:
        """A fresh consumer reads each partition from its leader."""
        for (topic, number), p in sorted(self.partitions.items()):
            if p.leader is None:
                self.final_read(topic, number, end_offset=None, error="LEADER_NOT_AVAILABLE")
                continue
            log, start = self.logs[p.leader, topic, number], self.starts.get((p.leader, topic, number), 0)
            self.poll(log, topic, number, process="final", phase="final", position=start, seek=True)
            self.final_read(topic, number, start_offset=start, end_offset=self.end_of(p.leader, topic, number))

    def stop_all(self, *, problem: str | None = None) -> None:
        """Ends everything in order."""
        for node in sorted(self.running - {HARNESS, CONTROLLER}):
            self.end(node, e.IncarnationEnd.STOPPED)
            self.killed.discard(node)
        if CONTROLLER in self.running:
            self.end(CONTROLLER, e.IncarnationEnd.STOPPED)
        self.note(HARNESS, e.RunEnded(cause_id=CAUSE, problem=problem))

    def finish(self) -> Path:
        """Reads everything, stops everything and writes the run directory."""
        self.read_all()
        self.stop_all()
        return self.write()

    def write(self) -> Path:
        """Writes the run directory as it is."""
        events = self.path / "events"
        events.mkdir(parents=True)
        (self.path / "cluster.yaml").write_text(f"era: {self.era}\n")
        report = "" if self.report is None else f"report: {self.report}\n"
        missed = "missed_step: end\n" if self.may_miss_steps else ""
        (self.path / "scenario.yaml").write_text(f"name: {self.path.parent.name}\n{report}{missed}")
        for (node, incarnation), lines in self.files.items():
            is_harness = node == HARNESS and not incarnation
            name = "harness.jsonl" if is_harness else f"{node}-{incarnation}.jsonl"
            (events / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
        (self.path / "history.jsonl").write_text("".join(json.dumps(line) + "\n" for line in self.history))
        for node in {owner for owner, _, _ in self.logs}:
            data = self.path / "nodes" / str(node) / "data"
            data.mkdir(parents=True)
            starts = [f"{each[1]} {each[2]} {start}" for each, start in self.starts.items() if each[0] == node]
            if starts:
                (data / "log-start-offset-checkpoint").write_text("\n".join(["0", str(len(starts)), *starts, ""]))
            if node not in self.killed:
                (data / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":1}')
        for (node, topic, partition), log in self.logs.items():
            directory = self.path / "nodes" / str(node) / "data" / f"{topic}-{partition}"
            directory.mkdir()
            topic_id = self.partitions[topic, partition].topic_id
            (directory / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}\n")
            start = self.starts.get((node, topic, partition), 0)
            first = log[0].base_offset if start and log else start
            (directory / f"{first:020}.log").write_bytes(b"".join(batch.encode() for batch in log))
        for voter, batches in self.voter_logs.items():
            directory = self.path / "nodes" / str(voter) / "data" / "__cluster_metadata-0"
            directory.mkdir(parents=True)
            (directory / f"{0:020}.log").write_bytes(log_content(batches))
        reseal(self.path)
        return self.path

    def _next(self) -> MetadataOffset:
        self.metadata_offset += 1
        return MetadataOffset(self.metadata_offset - 1)


def zookeeper_run(path: Path, *, era: str = "kafka-3.9-zk", switches: dict[str, str] | None = None) -> RunBuilder:
    """Three brokers beside a ZooKeeper server."""
    rules = rule_texts(era_rules(era)) | (switches or {})
    run = RunBuilder(path, era=era, switches=rules, metadata_in=NodeRole.ZOOKEEPER)
    return run.start_brokers(0, 1, 2)


def healthy(
    path: Path, *, switches: dict[str, str] | None = None, own: dict[int, dict[str, str]] | None = None
) -> RunBuilder:
    """Three brokers, three batches, all read once: nothing is wrong. Nodes may have rules of their own."""
    run = RunBuilder(path, switches=switches, own=own)
    run.start_brokers(0, 1, 2)
    run.create_topic()
    for _ in range(3):
        run.poll([run.send()])
    return run


def last_replica_standing(
    path: Path, *, era: str, brokers: tuple[int, int, int] = (0, 1, 2), tick_s: float | None = None
) -> RunBuilder:
    """The story of KIP-966's Motivation; under ``kafka-3.9`` the emptied last replica is elected again.

    With ``tick_s`` events are so far apart, whoever writes them.
    """
    a, b, c = brokers
    elr = era == "kip-966"
    off = {} if elr else {"elr": "off", "unclean_detection": "off"}
    begin_s = None if tick_s is None else 0.0
    run = RunBuilder(path, era=era, switches=off, begin_s=begin_s, tick_s=tick_s or 0.0)
    run.start_brokers(a, b, c)
    run.create_topic(replicas=brokers)
    for _ in range(5):
        run.poll([run.send()])
    run.fault("isolate", str(a))
    run.fence(a)
    run.alter(reason="broker_fenced", broker=a, leader=b, election=e.Election.ISR, isr=(b, c))
    for _ in range(5):
        run.poll([run.send()])
    run.fault("isolate", str(b))
    run.fence(b)
    run.alter(reason="broker_fenced", broker=b, leader=c, election=e.Election.ISR, isr=(c,), elr=(b,) if elr else ())
    run.send(acks=1)
    run.power_loss(c)
    run.fence(c)
    if elr:
        run.alter(
            reason="broker_fenced", broker=c, leader=None, election=e.Election.NO_CANDIDATE, isr=(), elr=(b, c),
            last_known_leader=c,
        )  # fmt: skip
        run.restart(c)
        run.alter(reason="broker_registered", broker=c, elr=(b,), last_known_leader=c)
        run.unfence(c)
        run.heal("isolate", "all")
        run.unfence(b)
        run.alter(reason="broker_unfenced", broker=b, leader=b, election=e.Election.ELR, isr=(b,), elr=())
        run.unfence(a)
        for batch in run.logs[b, "orders", 0][len(run.logs[a, "orders", 0]) :]:
            run.append(a, batch)
        for batch in run.logs[b, "orders", 0]:
            run.append(c, batch)
        run.expand((a, b, c))
    else:
        run.alter(reason="broker_fenced", broker=c, leader=None, election=e.Election.NO_CANDIDATE, isr=(c,))
        run.restart(c)
        run.unfence(c)
        run.alter(reason="broker_unfenced", broker=c, leader=c, election=e.Election.ISR)
        run.heal("isolate", "all")
        run.unfence(a)
        run.unfence(b)
        run.truncate(a, 0)
        run.truncate(b, 0)
        run.expand((a, b, c))
    run.send()
    return run


def _end(log: list[Batch]) -> int:
    return log[-1].last_offset + 1 if log else 0


def _epochs(log: list[Batch]) -> tuple[tuple[LeaderEpoch, Offset], ...]:
    starts = {batch.leader_epoch: batch.base_offset for batch in reversed(log)}
    return tuple((LeaderEpoch(leader_epoch), Offset(start)) for leader_epoch, start in sorted(starts.items()))


def _targets(text: str) -> tuple[tuple[NodeId, ...], tuple[e.FaultLink, ...]]:
    """The target of a fault as nodes and links: ``2``, ``0->100``, ``client->0``, messages or ``all``."""
    source, arrow, target = text.replace("client", "1000").partition("->")
    if arrow:
        return (), (e.FaultLink(NodeId(int(source)), NodeId(int(target.split()[0]))),)
    return (() if text == "all" else (NodeId(int(text)),)), ()


def _broker(broker: int | None) -> BrokerId | None:
    return None if broker is None else BrokerId(NodeId(broker))


def _brokers(brokers: tuple[int, ...]) -> tuple[BrokerId, ...]:
    return tuple(BrokerId(NodeId(broker)) for broker in brokers)
