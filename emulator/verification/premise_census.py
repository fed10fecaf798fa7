"""Which premises a run has.

A check without its premise would find nothing whatever happened, so that its ``ok`` would prove nothing.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Final

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
    UncleanLeaderElected,
    UncleanMethod,
)
from emulator.core.history import FinalReadOperation, OperationType
from emulator.core.types import ChangeReason
from emulator.verification.check import Premise
from emulator.verification.cluster_facts import ClusterFacts
from emulator.verification.partition_facts import ACKS_ALL, NO_ERROR, Change, PartitionFacts

_COMMITTED: Final[tuple[type[Event], ...]] = (
    BrokerRegistered,
    BrokerFenced,
    BrokerUnfenced,
    TopicDeleted,
    ConfigChanged,
    PartitionChanged,
)
_ANY_OF: Final[tuple[tuple[type[Event], Premise], ...]] = (
    (HighWatermarkAdvanced, Premise.HIGH_WATERMARK_MOVED),
    (BecameLeader, Premise.LED),
    (LogOpened, Premise.LOG_OPENED),
    (LogTruncated, Premise.TRUNCATED),
    (RecoveryStarted, Premise.RECOVERY_STARTED),
)


def premises_of_cluster(cluster: ClusterFacts) -> frozenset[Premise]:
    """Returns what the cluster of a run has."""
    return frozenset(_of_cluster(cluster))


def premises_of_partition(facts: PartitionFacts) -> frozenset[Premise]:
    """Returns what one of its partitions has."""
    found = {*_of_events(facts), *_of_elections(facts), *_of_history(facts), *_of_final_logs(facts)}
    for change in facts.changes:
        found.update(_of_change(change))
    return frozenset(found)


def _of_cluster(cluster: ClusterFacts) -> Iterator[Premise]:
    registrations = [registration.event for registration in cluster.registrations]
    if len(registrations) > 1:
        yield Premise.TWO_REGISTRATIONS
    if any(r.stored_broker_epoch not in (None, r.previous_broker_epoch) for r in registrations):
        yield Premise.UNCLEAN_REGISTRATION
    if len({(each.node, each.incarnation) for kind in _COMMITTED for each in cluster.events.of(kind)}) > 1:
        yield Premise.TWO_CONTROLLERS
    if cluster.events.of(ClusterSettled):
        yield Premise.SETTLED


def _of_events(facts: PartitionFacts) -> Iterator[Premise]:
    yield from (premise for kind, premise in _ANY_OF if facts.events.of(kind))
    roles = {appended.event.role for appended in facts.events.of(BatchAppended)}
    if AppendRole.LEADER in roles:
        yield Premise.STORED
    if AppendRole.FOLLOWER in roles:
        yield Premise.REPLICATED
    if any(decided.event.error == NO_ERROR for decided in facts.events.of(AlterPartitionDecided)):
        yield Premise.PROPOSAL_ACCEPTED
    committed: dict[str, int] = {}
    for advanced in facts.events.of(HighWatermarkAdvanced):
        topic_id, leader_epoch = advanced.event.topic_id, advanced.event.leader_epoch
        committed[topic_id] = min(committed.get(topic_id, leader_epoch), leader_epoch)
    for led in facts.events.of(BecameLeader):
        if committed.get(led.event.topic_id, led.event.leader_epoch) < led.event.leader_epoch:
            yield Premise.LED_AFTER_COMMIT


def _of_history(facts: PartitionFacts) -> Iterator[Premise]:
    acked = [
        sent
        for sent in facts.sent
        if sent.type is OperationType.OK and sent.acks == ACKS_ALL and sent.base_offset is not None
    ]
    if acked:
        yield Premise.ACKED_ALL
    first: dict[str, int] = {}
    for sent in acked:
        first[sent.history] = min(first.get(sent.history, sent.completed), sent.completed)
    if any(sent.invoked is not None and sent.invoked > first[sent.history] for sent in acked):
        yield Premise.SENT_AFTER_ACK
    if any(sent.type is OperationType.FAIL for sent in facts.sent):
        yield Premise.REFUSED
    received: set[str] = set()
    for poll in facts.polls:
        if poll.phase == "live" and poll.process in received:
            yield Premise.POLLED_AGAIN
            break
        if poll.spans:
            received.add(poll.process)
    if facts.received:
        yield Premise.CONSUMED
    if any(batch.served_epoch is not None for batch in facts.received):
        yield Premise.CONSUMED_BY_EPOCH
    for read in facts.final_reads:
        match read:
            case FinalReadOperation(type=OperationType.OK, start_offset=int() as start, end_offset=int() as end):
                if start < end:
                    yield Premise.READ_AT_THE_END
            case _:
                pass


def _of_elections(facts: PartitionFacts) -> Iterator[Premise]:
    if any(each.event.method is UncleanMethod.LONGEST_LOG for each in facts.events.of(UncleanLeaderElected)):
        yield Premise.LOGS_COMPARED


def _of_final_logs(facts: PartitionFacts) -> Iterator[Premise]:
    if facts.final_logs:
        yield Premise.FINAL_LOG
    replicas = {(batch.topic_id, batch.node) for batch in facts.final_batches}
    if len({topic_id for topic_id, _ in replicas}) < len(replicas):
        yield Premise.FINAL_REPLICAS
    batches = [batch for batch in facts.settled_batches if not batch.is_control]
    if batches:
        yield Premise.SETTLED_RECORDS
    sequences = Counter((b.topic_id, b.producer_id, b.producer_epoch) for b in batches if b.producer_id is not None)
    if any(count > 1 for count in sequences.values()):
        yield Premise.SETTLED_SEQUENCES


def _of_change(change: Change) -> Iterator[Premise]:
    new, old = change.new, change.old
    yield Premise.COMMITTED
    if len(new.isr) < new.effective_min_isr:
        yield Premise.BELOW_MIN_ISR
    if new.elr or new.last_known_elr:
        yield Premise.ELR
    is_moving = bool(new.adding_replicas or new.removing_replicas)
    if is_moving:
        yield Premise.REASSIGNMENT
    if old is None:
        return
    yield Premise.CHANGED
    if new.leader is not None and new.leader_epoch != old.leader_epoch and new.election is not Election.NONE:
        yield Premise.ELECTED
    if change.is_unclean:
        yield Premise.UNCLEAN_ELECTION
    if set(new.isr) - set(old.isr):
        yield Premise.ISR_GREW
    if (old.adding_replicas or old.removing_replicas) and not is_moving:
        is_cancelled = new.reason is ChangeReason.REASSIGNMENT
        yield Premise.REASSIGNMENT_CANCELLED if is_cancelled else Premise.REASSIGNMENT_COMPLETED
