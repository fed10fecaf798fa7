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
    """One lookup, answered with the start offset of the first larger epoch: S03."""

    HIGH_WATERMARK = "high_watermark"
    """Truncation to the local high watermark, as before 0.11: S01, S02."""


class SessionCheck(Enum):
    """The condition under which a second incarnation of a broker id is refused (DUPLICATE_BROKER_REGISTRATION)."""

    CONTACT_TIME = "contact_time"
    """While the stored epoch's last contact is within the session timeout (Kafka 4.x, KAFKA-19130)."""

    UNFENCED = "unfenced"
    """As ``CONTACT_TIME``, for unfenced brokers only (Kafka 3.9)."""


class LastKnown(Enum):
    """The replicas that an offline partition remembers as candidates (KIP-966)."""

    LEADER = "leader"
    """Only the leader that the partition had when it went offline; electable in every mode (Kafka 4.2 as shipped)."""

    KIP = "kip"
    """Members that left the ELR uncleanly, and the last leader; only the leader if unclean election is disabled."""


class ClearElr(Enum):
    """The effect of a new min ISR on an ELR that was computed for the old one (KIP-966, KAFKA-16540)."""

    SATISFIED = "satisfied"
    """Emptied if the ISR has at least the new min ISR (KIP-966). A smaller ISR commits nothing the ELR would lack."""

    ALWAYS = "always"
    """Emptied, whatever the ISR; an offline partition loses its candidates (Kafka 4.2 as shipped)."""

    OFF = "off"
    """Kept whatever the ISR: S17."""


class UncleanPick(Enum):
    """The choice of an unclean election when no recovery compares logs (KIP-966, delivery plan)."""

    FIRST = "first"
    """The first replica of the assignment that may lead (Kafka)."""

    RANDOM = "random"
    """Any replica that may lead; the driver draws (KIP-966)."""


class Switches(QuorumRules, frozen=True, kw_only=True):
    """One frozen set of rules. The defaults are era ``kip-966``: the KIPs to the letter, and Laststand's repairs.

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
    """The high watermark advances only while the committed ISR has min ISR members (KIP-966; in Kafka since 3.7).

    KIP-966: "Additional High Watermark advancement requirement"; in Kafka since 3.7 without a feature flag.
    """

    min_isr_capped: bool = True
    """A partition with fewer replicas than min.insync.replicas takes acks=all as soon as all are in sync (KIP-966).

    KIP-966: "min.insync.replicas > replication factor" is min(min ISR, replication factor); in Kafka since 3.7
    (KAFKA-15583). Earlier releases compare the ISR with the configured value, and such a partition refuses acks=all.
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

    KIP-101: followers look up one epoch since 0.11, and truncate to the high watermark before; KIP-279 repeats the
    lookup, since 2.0.
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

    KIP-966: members that left the ELR uncleanly, and the last leader; Kafka 4.2 remembers the leader only.
    """

    unclean_pick: UncleanPick = UncleanPick.RANDOM
    """The choice of an unclean election without a recovery (KIP-966).

    KIP-966: a random unfenced replica (delivery plan); Kafka takes the first in assignment order
    (``PartitionChangeBuilder``).
    """

    recovery_waits: bool = True
    """A Balanced recovery waits, up to its timeout, also for replicas that may still start (KIP-966): S52.

    KIP-966: "all the LastKnownELR members have replied, plus the replicas replied within the timeout", and a replica
    that starts within the timeout can still reply. ``off`` is the other reading: the controller elects once every
    replica that may lead at that moment has answered. Kafka has no unclean recovery.
    """

    recovering_gate: bool = True
    """An uncleanly elected leader recovers before it serves, and its followers serve no reads meanwhile (KIP-704).

    KIP-704: Kafka stores the state since 3.2 and clears it with the leader's next AlterPartition, but no release
    recovers anything or refuses a request because of it (KAFKA-13587).
    """

    recovery_aborts_transactions: bool = True
    """A leader that recovers from an unclean election aborts the transactions that are open in its log (KIP-704).

    KIP-704: "any necessary recovery steps"; Kafka has none. A transaction whose end was lost stays open, and readers of
    committed records stop there for good (KAFKA-20716).
    """

    recovery_asks_coordinator: bool = True
    """A leader that recovers asks how open transactions ended before it aborts them (KIP-704).

    KIP-704: "any necessary recovery steps"; Kafka has none. If the coordinator still has the decision to commit, the
    leader writes the lost marker again; to abort without asking is a guess, and contradicts a commit that was
    acknowledged.
    """

    txn_recovery: TxnRecovery = TxnRecovery.ABORT_ONGOING
    """The recovery of a coordinator of transactions whose log was elected uncleanly.

    KIP-704: "any necessary recovery steps"; Kafka has none. A transaction whose decision was lost looks ongoing,
    although its commit may have been acknowledged and some partitions may have its marker (KAFKA-20716).
    """

    txn_recovery_scan: bool = True
    """A leader ends open transactions that no coordinator knows, whenever it or a coordinator was elected (KIP-704).

    KIP-704: "any necessary recovery steps"; Kafka leaves it to an administrator (``kafka-transactions.sh
    find-hanging``, KIP-664). A coordinator whose log lost a transactional id, or a partition of a transaction, writes
    no marker there, and readers of committed records stop for good.
    """

    group_recovery: GroupRecovery = GroupRecovery.REBALANCE
    """The recovery of a coordinator of groups whose log was elected uncleanly.

    KIP-704: "any necessary recovery steps"; Kafka has none. The number of a lost generation is assigned to a new
    one, and a member of the lost generation is taken for a member of the new one.
    """

    offset_beyond_end: OffsetBeyondEnd = OffsetBeyondEnd.CLAMP
    """The treatment of a group's position whose records were lost by an unclean election (KIP-704): T14, T15.

    KIP-704: "any necessary recovery steps"; Kafka has none: the group goes on by ``auto.offset.reset`` if its
    position is out of range, and otherwise in the middle of records that were written later.
    """

    stray_cleanup: StrayCleanup = StrayCleanup.DELETE
    """The treatment of logs that are no longer assigned to the broker (KIP-550).

    KIP-550: it deletes such logs, and was never merged; Kafka in KRaft mode renames them to ``-stray`` and leaves them
    there (KAFKA-14616); earlier releases do nothing.
    """

    clear_elr_on_min_isr_change: ClearElr = ClearElr.SATISFIED
    """The effect of a new min ISR on eligible leader replicas (KIP-966).

    KIP-966: "Other behaviors", if the ISR has at least the new min ISR; Kafka 4.x empties the ELR in any case
    (KAFKA-16540).
    """

    elr_within_replicas: bool = True
    """A replica that a reassignment removes leaves the ELR and the last known ELR (KIP-966).

    KIP-966: "Other behaviors", a complete reassignment leaves only target replicas in the ELR; Kafka 4.x does not
    filter the ELR.
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

    KIP-966: "Other behaviors", a cancelled reassignment, too, must leave min ISR members in the ISR; Kafka requires one
    member (KIP-455).
    """

    reassignment_needs_all: bool = False
    """A reassignment completes once every target replica is in the ISR, not only those that it adds (KAFKA-15665).

    Kafka 3.8: KAFKA-15665 requires every target, so a dead replica that stays assigned keeps the reassignment from
    completing. KIP-966 requires that "all the adding replicas should be in ISR", and min ISR. Since 4.3 (KAFKA-19975)
    Kafka again requires only the added replicas, unless they are fewer than the removed ones
    (``PartitionReassignmentReplicas.maybeCompleteReassignment``); that is ``off`` here, with
    ``reassignment_requires_min_isr`` off, too.
    """

    reassignment_requires_min_isr: bool = True
    """A reassignment completes only while the ISR has min ISR members (KIP-966).

    KIP-966: "Other behaviors", a reassignment that needs only the added replicas could leave an ISR of one. Kafka does
    not require min ISR: up to 4.2 it requires every target, since 4.3 only that the ISR does not shrink (KAFKA-19975).
    """

    downgrade_ignores_elr: bool = True
    """After a downgrade of the feature the ELR that is left over provides no candidates (KIP-966).

    KIP-966: "Compatibility", ELR fields are ignored after the downgrade; in Kafka 4.x they still decide one
    election.
    """

    truncation_sync: bool = True
    """A truncated log is synced before anything else is written about it (S35).

    Laststand: KIP-101 has followers truncate by epoch; Kafka does not sync the truncated log (``LocalLog.truncateTo``),
    but syncs the epoch cache at once. Found by the simulator.
    """

    truncation_ends_at_batch: bool = True
    """A log that is truncated within a batch ends where that batch began, not at the requested offset (S49).

    Laststand: no KIP says where a log ends that is truncated within a batch; Kafka removes the whole batch, but takes
    the requested offset as the log end offset (``LocalLog.truncateTo``, ``LogSegment.truncateTo``). Found by the
    simulator.
    """

    empty_logs_keep_epoch: bool = True
    """A log keeps the leader epoch of the last record that was deleted from it, with the epoch's start offset (S50).

    Laststand: by KIP-101 a log's epochs show where it differs from the leader's; Kafka moves the epoch of deleted
    records to the log start (``LeaderEpochFileCache.truncateFromStart``), and removes epochs that start at the log end
    when it opens a log (``LogLoader.load``), so that a log whose records were all deleted has no epochs.
    """

    lower_start_is_durable: bool = True
    """A log whose start offset is lowered writes the new start to disk at once, not with the next checkpoint (S51).

    Laststand: no KIP says so (in KIP-107 log start offsets only rise); Kafka writes log starts every
    ``log.flush.start.offset.checkpoint.interval.ms``. Found by the simulator.
    """

    holes_end_logs: bool = True
    """Recovery ends a log before the first segment that does not continue the previous one (S47).

    Laststand: KIP-101 compares logs by epoch, which shows no hole; Kafka (``LogLoader.recoverLog``) drops later
    segments only after one from which it had to cut bytes; a segment that lost whole batches looks intact.
    Compaction leaves such gaps legitimately, but nothing is compacted here. Found on processes by ``laststand fuzz``.
    """

    recovery_trims_epochs: bool = True
    """Recovery removes epochs beyond the end of a log before it adds the epochs of the log's batches (S48).

    Laststand: by KIP-101 a log's epochs show where it differs from the leader's; Kafka adds epochs of recovered
    batches only above the newest epoch that it has (``LogSegment.recover``), and removes epochs beyond the log's end
    only after that (``LogLoader.load``). Found by the simulator.
    """

    truncate_before_hw: bool = True
    """A diverging follower truncates its log before it takes the leader's high watermark over (KAFKA-14704): S22.

    Kafka 3.4: KAFKA-14704; followers serve readers since KIP-392 (2.4), and the order was wrong for some releases
    before 3.4.
    """

    roles_after_registration: bool = True
    """A broker opens its logs and takes its roles only once the metadata has its own registration (S36).

    Laststand: KIP-631 has a broker catch up with the metadata before it starts, and does not say what it does with
    roles that it finds there. Until 3.4 Kafka published no metadata to a broker before it had caught up; later releases
    install the publishers first (``BrokerServer.startup``), so a process may act on its predecessor's roles. Found by
    the simulator.
    """

    progress_of_this_term: bool = True
    """A leader forgets the offsets that followers reported to it, unless it led in the epoch just before (S43).

    Laststand: KIP-101 has a leader wait for its followers' fetches; Kafka (``Partition.makeLeader``,
    ``Replica.resetReplicaState``) keeps the followers' reported offsets if it is still leader by its own
    knowledge; metadata that arrives all at once hides another leader's term in between.
    """

    untouched_logs_stay_proven: bool = True
    """A broker that stops before it opens its logs renews the proof that they were closed cleanly (S46).

    Laststand: KIP-966, "Detection of an unclean shutdown", has a broker write its epoch at a clean shutdown; Kafka
    writes none while a broker starts (``BrokerServer.shutdown``), nor where the logs were not loaded
    (``LogManager.shutdown``). Found by the simulator.
    """

    refusals_are_final: bool = True
    """A refusal after which the leader reverts its ISR raises the partition epoch, so no copy of it applies (S45).

    Laststand: KIP-841 has the leader revert to its last ISR at INELIGIBLE_REPLICA, as Kafka does
    (``Partition.handleAlterPartitionError``); neither considers that a copy of the request may arrive later and be
    accepted.
    """

    answers_await_metadata: bool = True
    """A leader applies an accepted ISR only after the metadata that the controller had when it accepted it (S38).

    Laststand: KIP-497 has the leader act on the response; neither KIP-497 nor KIP-966 orders that after the metadata,
    nor does Kafka (``Partition.handleAlterPartitionUpdate``).
    """

    coordinator_awaits_commit: bool = True
    """A new coordinator acts only once every record that its log held at the election is committed.

    Laststand: no KIP says so; Kafka loads to the log end, committed or not (``CoordinatorLoaderImpl``), and acts at
    once: a group gets an earlier position, and markers are written for a decision that may still be lost.
    """

    generation_fencing: bool = True
    """A coordinator takes a transaction's positions only from members of the newest generation of the group (KIP-447).

    KIP-447: "Producer scalability for exactly once semantics", in Kafka since 2.5: TxnOffsetCommit names the member and
    its generation. Without it a member whose partitions are another one's by now still commits its positions. A request
    that names no member is taken with either value.
    """

    partition_verification: bool = True
    """A leader asks the coordinator before it appends the first records of a transaction (KIP-890).

    KIP-890: "Transactions Server-Side Defense", part 1, in Kafka since 3.6
    (``transaction.partition.verification.enable``). Without it a record that arrives after its transaction's end opens
    a transaction that no coordinator knows, and that never ends.
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
# Without Laststand's own rules.
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
    generation_fencing=False,
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
"""Presets that name real protocols. The eras of ZooKeeper clusters are in ``zookeeper.rules``."""

ERAS_WITH_ZOOKEEPER: Final = frozenset(
    {"kafka-2.5-zk", "kafka-2.6-zk", "kafka-3.1-zk", "kafka-3.2-zk", "kafka-3.9-zk", "kip-550-zk"}
)
"""Names of the eras of clusters with ZooKeeper; module ``eras`` has their rules."""

_NOT_HERE: Final = "eras with ZooKeeper are for `run`, `simulate`, `up` and `compose`"

DEFAULT_ERA: Final = "kip-966"


def era_switches(era: str) -> Switches:
    """Returns the switches of an era.

    Raises:
        ConfigError: no such era, or an era of clusters with ZooKeeper.
    """
    if era in ERAS:
        return ERAS[era]
    expected = "one of " + ", ".join(ERAS)
    if era in ERAS_WITH_ZOOKEEPER:
        raise ConfigError(key="era", value=era, expected=f"{expected} ({_NOT_HERE})")
    raise ConfigError(key="era", value=era, expected=expected)


def is_of_3_9_or_before(switches: Switches) -> bool:
    """Returns whether the rules are of a release before 4.0: no rule that Kafka introduced in 4.0 is on."""
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
