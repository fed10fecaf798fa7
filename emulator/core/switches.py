"""Switches: every rule whose absence once lost data; and eras, which are presets of switches.

A switch selects one of two or more named rules and is read in exactly one place of the core. An era names a real
protocol. Eras form a chain: each lists only its differences from the next era, and ``kip-966``, the last, has the
defaults. So a switch needs a field here, and a line in the last era without its rule.
"""

from enum import Enum
from types import MappingProxyType
from typing import Final

import msgspec
from msgspec.structs import replace

from laststand.emulator.core.errors import ConfigError
from laststand.emulator.core.quorum_rules import QuorumRules
from laststand.emulator.core.types import ClusterKind, GroupRecovery, OffsetBeyondEnd, StrayCleanup, TxnRecovery


class MaximalIsr(Enum):
    """The ISR that bounds the high watermark while an AlterPartition is in flight (KIP-497)."""

    ON = "on"
    """Committed ISR united with the proposed one: safe whichever way the controller decides."""

    PROPOSED = "proposed"
    """The proposed ISR at once: the eager shrink of S07."""

    COMMITTED_ONLY = "committed_only"
    """The committed ISR, without a member that is being added: S08."""


class Truncation(Enum):
    """The method by which a new follower finds where its log stops agreeing with the leader's."""

    LEADER_EPOCH = "leader_epoch"
    """Epoch end offsets, repeated until the epochs agree (KIP-101 with KIP-279)."""

    KIP_101 = "kip101"
    """One lookup that takes the first larger epoch's start: S03."""

    HIGH_WATERMARK = "high_watermark"
    """Cut at the local high watermark, as before 0.11: S01, S02."""


class SessionCheck(Enum):
    """The condition under which a second incarnation of a broker id is refused (DUPLICATE_BROKER_REGISTRATION)."""

    CONTACT_TIME = "contact_time"
    """While the stored epoch's last contact is within the session timeout (Kafka 4.x, KAFKA-19130)."""

    UNFENCED = "unfenced"
    """As ``CONTACT_TIME``, for unfenced brokers only (Kafka 3.9)."""


class LastKnown(Enum):
    """The replicas that an offline partition remembers as candidates (KIP-966)."""

    LEADER = "leader"
    """Only the leader that it had when it went offline; electable in every mode (Kafka 4.2 as shipped)."""

    KIP = "kip"
    """Members that left the ELR uncleanly, and the last leader beside them; the leader only where unclean is off."""


class ClearElr(Enum):
    """The effect of a new min ISR on an ELR that was computed for the old one (KIP-966, KAFKA-16540)."""

    SATISFIED = "satisfied"
    """Emptied where the ISR has the new size: the KIP. Elsewhere the high watermark stands, so members stay good."""

    ALWAYS = "always"
    """Emptied, whatever the ISR; an offline partition loses its candidates (Kafka 4.2 as shipped)."""

    OFF = "off"
    """Kept: S17."""


class UncleanPick(Enum):
    """The choice of an unclean election when no recovery compares logs (KIP-966, delivery plan)."""

    FIRST = "first"
    """The first replica of the assignment that may lead (Kafka)."""

    RANDOM = "random"
    """Any replica that may lead; the driver draws (KIP-966)."""


class Switches(QuorumRules, frozen=True, kw_only=True):
    """One frozen set of rules. The defaults are era ``kip-966``: the KIPs to the letter, and our repairs.

    Each rule's docstring also names its origin: KIP-966, another KIP, a Kafka release, or Laststand itself, if no KIP
    has the rule and Kafka behaves differently. ``docs/eras.md`` is generated from these docstrings.
    """

    @property
    def kind(self) -> ClusterKind:
        """The kind of cluster that follows these rules."""
        return ClusterKind.KRAFT

    elr: bool = True
    """Eligible leader replicas exist and the ISR may be empty (KIP-966); bootstraps the feature at level 1.

    KIP-966: Kafka 4.0 has it as a preview, 4.1 turns it on for new clusters (``eligible.leader.replicas.version``
    1).
    """

    hw_requires_min_isr: bool = True
    """The high watermark waits for a committed ISR of min ISR (KIP-966; in Kafka since 3.7).

    KIP-966: "Additional High Watermark advancement requirement"; in Kafka since 3.7 without a feature flag.
    """

    min_isr_capped: bool = True
    """A partition with fewer replicas than min.insync.replicas takes acks=all as soon as all are in sync (KIP-966).

    KIP-966: "min.insync.replicas > replication factor" is min(min ISR, replication factor); in Kafka since 3.7
    (KAFKA-15583). Before, the ISR was compared with the value as configured, and such a partition refused acks=all.
    """

    unclean_detection: bool = True
    """A registration without the previous broker epoch leaves ISR and ELR (KIP-966, KAFKA-18635).

    KIP-966: "Detection of an unclean shutdown"; Kafka 4.x since KAFKA-18106 and KAFKA-18635.
    """

    maximal_isr: MaximalIsr = MaximalIsr.ON
    """The ISR that bounds the high watermark during an ISR change (KIP-497).

    KIP-497: "maximal ISR"; before AlterPartition the leader wrote the ISR itself, so the old eras keep the safe
    value.
    """

    truncation: Truncation = Truncation.LEADER_EPOCH
    """The method by which followers reconcile their logs (KIP-101, KIP-279).

    KIP-101: one epoch lookup from 0.11 on, to the high watermark before; KIP-279 repeats the lookup, since 2.0.
    """

    ap_partition_epoch_check: bool = True
    """AlterPartition is compare-and-set on the partition epoch (KIP-497).

    KIP-497: before it a compare-and-set on the ZooKeeper version of the state did the same.
    """

    ap_broker_epoch_check: bool = True
    """AlterPartition members carry broker epochs, which the controller compares (KIP-903).

    KIP-903: since Kafka 3.5.
    """

    session_check: SessionCheck = SessionCheck.CONTACT_TIME
    """The condition under which a session counts as live when another incarnation registers (KAFKA-19130).

    Kafka 4.x: KAFKA-19130 looks at the last contact of the stored epoch only; 3.9 gives a fenced broker no session.
    """

    last_known: LastKnown = LastKnown.KIP
    """The replicas that an offline partition remembers (KIP-966).

    KIP-966: it collects members that left the ELR uncleanly and the last leader beside them; Kafka 4.2 keeps the
    leader alone.
    """

    unclean_pick: UncleanPick = UncleanPick.RANDOM
    """The choice of an unclean election without a recovery (KIP-966).

    KIP-966: a random unfenced replica (delivery plan); Kafka takes the first in assignment order
    (``PartitionChangeBuilder``).
    """

    recovery_waits: bool = True
    """Balanced waits until the timeout for every replica that has not answered, and may still start (KIP-966): S52.

    KIP-966: "all the LastKnownELR members have replied, plus the replicas replied within the timeout", and who starts
    within the timeout can still reply. ``off`` is the other reading: it elects once everybody has answered who could
    lead then. Kafka has no unclean recovery.
    """

    recovering_gate: bool = True
    """An uncleanly elected leader recovers before it serves, and its followers serve no reads meanwhile (KIP-704).

    KIP-704: Kafka stores the state since 3.2 and clears it with the leader's next AlterPartition, but no release
    recovers anything or refuses a request for it (KAFKA-13587).
    """

    recovery_aborts_transactions: bool = True
    """A leader that recovers from an unclean election aborts the transactions that are open in its log (KIP-704).

    KIP-704: "any necessary recovery steps", for what transaction coordinators believe; Kafka has no such step, and a
    transaction whose end was lost stays open: readers of committed records stop there and never go on (KAFKA-20716).
    """

    recovery_asks_coordinator: bool = True
    """A leader that recovers asks how open transactions ended before it aborts them (KIP-704).

    KIP-704: "any necessary recovery steps"; Kafka has none. A commit whose marker was lost with its leader is written
    again where the coordinator's log is whole; an abort is a guess, and undoes what the producer was told.
    """

    txn_recovery: TxnRecovery = TxnRecovery.ABORT_ONGOING
    """The recovery of a coordinator of transactions whose log was elected uncleanly.

    KIP-704: "any necessary recovery steps"; Kafka has none. A transaction whose decision was lost looks ongoing: its
    producer may have been told that it is committed, and some partitions may have its end (KAFKA-20716).
    """

    txn_recovery_scan: bool = True
    """A leader ends open transactions that no coordinator knows, whenever it or a coordinator was elected (KIP-704).

    KIP-704: "any necessary recovery steps"; Kafka leaves it to an administrator (``kafka-transactions.sh
    find-hanging``, KIP-664). A coordinator whose log lost a transactional id, or a partition of a transaction, writes
    no marker there, and readers of committed records stop for good.
    """

    group_recovery: GroupRecovery = GroupRecovery.REBALANCE
    """The recovery of a coordinator of groups whose log was elected uncleanly.

    KIP-704: "any necessary recovery steps"; Kafka has none. A generation that was lost is given again to others, and a
    member of the lost one is taken for current.
    """

    offset_beyond_end: OffsetBeyondEnd = OffsetBeyondEnd.CLAMP
    """The treatment of a group's position whose records were lost by an unclean election (KIP-704): T14, T15.

    KIP-704: "any necessary recovery steps"; Kafka has none: the group goes on by ``auto.offset.reset`` where its
    position is out of range, and in the middle of other records where it is not.
    """

    stray_cleanup: StrayCleanup = StrayCleanup.DELETE
    """The treatment of logs that are not assigned here any more (KIP-550).

    KIP-550: never merged, it deletes; Kafka in KRaft mode renames to ``-stray`` and leaves it there (KAFKA-14616);
    before there was nothing.
    """

    clear_elr_on_min_isr_change: ClearElr = ClearElr.SATISFIED
    """The effect of a new min ISR on eligible leader replicas (KIP-966).

    KIP-966: "Other behaviors", where the new min ISR is no more than the ISR; Kafka 4.x clears in any case
    (KAFKA-16540).
    """

    elr_within_replicas: bool = True
    """A replica that is reassigned away leaves the ELR and the replicas that are remembered beside it (KIP-966).

    KIP-966: "Other behaviors", once a reassignment is complete the ELR has final replicas only; Kafka 4.x does not
    filter it.
    """

    min_isr_per_partition: bool = True
    """The controller caps min ISR by each partition's own replicas, not by those of partition 0 (KIP-966): S42.

    KIP-966: "min.insync.replicas > replication factor" is min(min ISR, replication factor); Kafka 4.x takes the
    replicas of partition 0 for every partition of the topic
    (``ReplicationControlManager.getTopicEffectiveMinIsr``), while a leader counts its own partition's
    (``Partition.effectiveMinIsr``).
    """

    cancel_requires_min_isr: bool = True
    """A reassignment is cancelled only if enough of the replicas that remain are in sync (KIP-966).

    KIP-966: "Other behaviors", min ISR is asked for when a reassignment is cancelled, too; Kafka asks for one
    member (KIP-455).
    """

    reassignment_needs_all: bool = False
    """A reassignment completes with every target in the ISR, not with those alone that it adds (KAFKA-15665).

    Kafka 3.8: KIP-966 leaves it at "all the adding replicas should be in ISR", and asks for min ISR beside that; Kafka
    asks for every target (KAFKA-15665), so that a dead one that stays keeps a reassignment from its end. Since 4.3
    (KAFKA-19975) it asks for those that are added again, unless they are fewer than those that leave
    (``PartitionReassignmentReplicas.maybeCompleteReassignment``), which is ``off`` without
    ``reassignment_requires_min_isr``.
    """

    reassignment_requires_min_isr: bool = True
    """A reassignment completes with an ISR of min ISR only (KIP-966).

    KIP-966: "Other behaviors", where one that completes with those that it adds could leave one member; Kafka does not
    ask for it: up to 4.2 every target is no fewer, and since 4.3 the ISR only does not shrink (KAFKA-19975).
    """

    downgrade_ignores_elr: bool = True
    """Without the feature an ELR that is left over is no candidate list (KIP-966).

    KIP-966: "Compatibility", ELR fields are ignored after the downgrade; in Kafka 4.x they still decide one
    election.
    """

    truncation_sync: bool = True
    """A log that was cut is synced before anything else is written about it (S35).

    Laststand: KIP-101 lets followers cut their logs by epoch; Kafka syncs no cut (``LocalLog.truncateTo``), and the
    epochs at once. Found by the simulator.
    """

    truncation_ends_at_batch: bool = True
    """A log that is cut within a batch ends where that batch began, not at the offset asked for (S49).

    Laststand: KIP-101 has followers cut their logs, and no KIP says where one ends that is cut within a batch;
    Kafka's ends at the offset that it was cut at, and the batch goes whole (``LocalLog.truncateTo``,
    ``LogSegment.truncateTo``). Found by the simulator.
    """

    empty_logs_keep_epoch: bool = True
    """A log keeps the epoch of the last record that was deleted from it, where that began (S50).

    Laststand: by KIP-101 a log's epochs show where it differs from the leader's; Kafka moves the epoch of deleted
    records to the log start (``LeaderEpochFileCache.truncateFromStart``), and drops what begins at a log's end when
    it opens it (``LogLoader.load``), so that a log whose records were all deleted has none.
    """

    lower_start_is_durable: bool = True
    """A log that begins again below its start writes that down at once, not only with the next checkpoint (S51).

    Laststand: no text says so (KIP-107 has log starts rise only); Kafka writes log starts every
    ``log.flush.start.offset.checkpoint.interval.ms``. Found by the simulator.
    """

    holes_end_logs: bool = True
    """Recovery ends a log where a segment does not follow on the one before (S47).

    Laststand: KIP-101 compares logs by epoch, which shows no hole; Kafka (``LogLoader.recoverLog``) drops later
    segments only after one from which it had to cut bytes; a segment that lost whole batches looks intact.
    Compaction leaves such gaps by right; here nothing is compacted. Found on processes by ``laststand fuzz``.
    """

    recovery_trims_epochs: bool = True
    """Recovery forgets epochs beyond the end of a log before it adds those of its batches, not after (S48).

    Laststand: by KIP-101 a log's epochs show where it differs from the leader's; Kafka adds those of recovered
    batches only above the newest that it has (``LogSegment.recover``), and forgets what begins beyond the log's end
    after that (``LogLoader.load``). Found by the simulator.
    """

    truncate_before_hw: bool = True
    """A follower that diverges cuts its log, and takes no high watermark over until it agrees (KAFKA-14704): S22.

    Kafka 3.4: KAFKA-14704; followers serve readers since KIP-392 (2.4), and the order was wrong for some releases
    before 3.4.
    """

    roles_after_registration: bool = True
    """A broker opens its logs and takes its roles once metadata knows this very process (S36).

    Laststand: KIP-631 has a broker catch up with the metadata before it starts, and does not say what it does with
    roles that it finds there. Until 3.4 Kafka published nothing to it before that; later releases install the
    publishers first (``BrokerServer.startup``), so a process can act on its predecessor's roles. Found by the
    simulator.
    """

    progress_of_this_term: bool = True
    """A leader that was not leader in the epoch just before counts on nothing that followers reported to it (S43).

    Laststand: KIP-101 has a leader wait for its followers' fetches; Kafka (``Partition.makeLeader``,
    ``Replica.resetReplicaState``) keeps what it knows of them if it led before, whoever led in between, so that
    metadata that comes together hides a term.
    """

    untouched_logs_stay_proven: bool = True
    """A broker that stops before it opens its logs renews the proof that they were closed in order (S46).

    Laststand: KIP-966, "Detection of an unclean shutdown", has a broker write its epoch when it stops in order;
    Kafka writes none while a broker starts (``BrokerServer.shutdown``), nor where the logs were not loaded
    (``LogManager.shutdown``). Found by the simulator.
    """

    refusals_are_final: bool = True
    """A refusal that a leader goes back on moves the partition epoch on: no other copy of the change applies (S45).

    Laststand: KIP-841 has the leader go back to its ISR at INELIGIBLE_REPLICA, as Kafka does
    (``Partition.handleAlterPartitionError``); neither sees that a copy of the request may arrive later, and be
    carried out.
    """

    answers_await_metadata: bool = True
    """A leader takes an accepted ISR once it knows all that the controller knew when it accepted it (S38).

    Laststand: KIP-497 has the leader act on the answer, and neither it nor KIP-966 orders that after the metadata;
    nor does Kafka (``Partition.handleAlterPartitionUpdate``).
    """

    coordinator_awaits_commit: bool = True
    """A coordinator acts once all that its log held when it was elected is committed, not at once.

    Laststand: no KIP says so; Kafka loads to the log end, committed or not (``CoordinatorLoaderImpl``), and answers
    by what is committed meanwhile: a group is told an earlier position, and an end is acted on that may be lost.
    """

    partition_verification: bool = True
    """A leader asks the coordinator before it appends the first records of a transaction (KIP-890).

    KIP-890: "Transactions Server-Side Defense", part 1, in Kafka since 3.6
    (``transaction.partition.verification.enable``). Without it a record that arrives after its transaction's end opens
    one that no coordinator knows, and that never ends.
    """

    epoch_per_transaction: bool = True
    """Every transaction ends with the next producer epoch, and leaders add partitions to transactions (KIP-890).

    KIP-890: part 2, ``transaction.version`` 2, in Kafka since 4.0. Without it an end that arrives late ends the next
    transaction of the producer (KAFKA-17754).
    """

    produce_topic_id: bool = True
    """A leader refuses records that are meant for another topic of the same name (KIP-516): S41.

    KIP-516: produce requests name topics by id since Kafka 4.1 (version 13, KAFKA-10551), which
    ``KafkaApis.handleProduceRequest`` and ``ReplicaManager.getPartitionOrException`` compare.
    """


_KIP_966: Final = Switches()
# Without what is Laststand's own.
_KIP_966_TEXT: Final = replace(
    _KIP_966,
    truncation_sync=False,
    truncation_ends_at_batch=False,
    empty_logs_keep_epoch=False,
    lower_start_is_durable=False,
    holes_end_logs=False,
    recovery_trims_epochs=False,
    roles_after_registration=False,
    progress_of_this_term=False,
    untouched_logs_stay_proven=False,
    refusals_are_final=False,
    answers_await_metadata=False,
    coordinator_awaits_commit=False,
    leader_syncs_first=False,
    start_syncs_log=False,
    missing_state_stops=False,
    stray_claims_are_unknown=False,
    known_leader_first=False,
)
_KAFKA_4_2: Final = replace(
    _KIP_966_TEXT,
    last_known=LastKnown.LEADER,
    unclean_pick=UncleanPick.FIRST,
    recovering_gate=False,
    recovery_aborts_transactions=False,
    recovery_asks_coordinator=False,
    txn_recovery=TxnRecovery.OFF,
    txn_recovery_scan=False,
    group_recovery=GroupRecovery.OFF,
    offset_beyond_end=OffsetBeyondEnd.SERVE,
    stray_cleanup=StrayCleanup.RENAME,
    clear_elr_on_min_isr_change=ClearElr.ALWAYS,
    elr_within_replicas=False,
    min_isr_per_partition=False,
    cancel_requires_min_isr=False,
    reassignment_needs_all=True,
    reassignment_requires_min_isr=False,
    downgrade_ignores_elr=False,
)
_KAFKA_3_9: Final = replace(
    _KAFKA_4_2,
    elr=False,
    unclean_detection=False,
    session_check=SessionCheck.UNFENCED,
    produce_topic_id=False,
    epoch_per_transaction=False,
    pre_vote=False,
    directory_ids=False,
    known_leader_first=True,
)
_KAFKA_0_11: Final = replace(
    _KAFKA_3_9,
    hw_requires_min_isr=False,
    partition_verification=False,
    min_isr_capped=False,
    truncation=Truncation.KIP_101,
    ap_broker_epoch_check=False,
    stray_cleanup=StrayCleanup.OFF,
    roles_after_registration=True,
    check_quorum=False,
)
_KAFKA_0_10: Final = replace(_KAFKA_0_11, truncation=Truncation.HIGH_WATERMARK)

ERAS: Final = MappingProxyType(
    {
        "kafka-0.10": _KAFKA_0_10,
        "kafka-0.11": _KAFKA_0_11,
        "kafka-3.9": _KAFKA_3_9,
        "kafka-4.2": _KAFKA_4_2,
        "kip-966-text": _KIP_966_TEXT,
        "kip-966": _KIP_966,
    }
)
"""Presets that name real protocols. Those of ZooKeeper clusters are in ``zookeeper.rules``."""

ERAS_WITH_ZOOKEEPER: Final = frozenset(
    {"kafka-2.5-zk", "kafka-2.6-zk", "kafka-3.1-zk", "kafka-3.2-zk", "kafka-3.9-zk", "kip-550-zk"}
)
"""Eras of clusters with ZooKeeper, whose rules ``eras`` has."""

_NOT_HERE: Final = "eras with ZooKeeper are for `run`, `simulate`, `up` and `compose`"

DEFAULT_ERA: Final = "kip-966"


def era_switches(era: str) -> Switches:
    """Returns the switches of an era.

    Raises:
        ConfigError: no such era, or one of clusters with ZooKeeper.
    """
    if era in ERAS:
        return ERAS[era]
    expected = "one of " + ", ".join(ERAS)
    if era in ERAS_WITH_ZOOKEEPER:
        raise ConfigError(key="era", value=era, expected=f"{expected} ({_NOT_HERE})")
    raise ConfigError(key="era", value=era, expected=expected)


def is_of_3_9_or_before(switches: Switches) -> bool:
    """Returns whether rules are of a release before 4.0: none of the rules that Kafka has since 4.0 is on."""
    brought = (name for name in Switches.__struct_fields__ if getattr(_KAFKA_3_9, name) != getattr(_KAFKA_4_2, name))
    return not any(getattr(switches, name) == getattr(_KAFKA_4_2, name) for name in brought)


def switch_texts(switches: Switches) -> dict[str, str]:
    """Returns every switch by name as text: ``on``, ``off``, or the name of a rule."""
    return {
        name: {True: "on", False: "off"}.get(rule, str(rule)) for name, rule in msgspec.to_builtins(switches).items()
    }


def is_switch(name: str) -> bool:
    """Returns whether ``name`` is a switch, as opposed to a Kafka property."""
    return name in Switches.__struct_fields__


def with_switch(switches: Switches, name: str, text: str) -> Switches:
    """Returns the switches with one changed, as ``--set name=text`` asks.

    Raises:
        ConfigError: unknown switch, or not one of its rules.
    """
    if not is_switch(name):
        raise ConfigError(key=name, value=None, expected="a switch: " + ", ".join(Switches.__struct_fields__))
    rules = _rules(name)
    if text not in rules:
        raise ConfigError(key=name, value=text, expected="one of " + ", ".join(rules))
    return replace(switches, **{name: rules[text]})


def switch_choices(name: str) -> tuple[str, ...]:
    """Returns the rules among which a switch selects, as text."""
    return tuple(_rules(name))


def _rules(name: str) -> dict[str, Enum | bool]:
    default = getattr(Switches(), name)
    if isinstance(default, Enum):
        return {member.value: member for member in type(default)}
    return {"on": True, "off": False}
