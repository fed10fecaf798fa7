"""The promises that the emulator makes for every run: the table of checks by id.

Two oracles judge these promises independently of each other: the simulator's, which watches a cluster from outside
while it runs, and ``laststand.emulator.verification``, which reads what a run left on disk. Their checks share only
this table, so that one oracle detects a mistake of the other.

A promise holds in every era unless it names switches. A promise with switches restates a rule of the protocol, and is
judged only if each switch has one of the listed values, written as in ``NodeStarted`` and ``cluster.yaml``.
"""

from collections.abc import Iterable, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final, NamedTuple

import msgspec

from laststand.emulator.core.types import ClusterKind, NodeRole


class PromiseKind(Enum):
    """The subject of a promise."""

    OUTCOME = "outcome"
    """Something that users see; promised in every era."""

    CANDIDATE = "candidate"
    """The log of an electable replica; one more election makes it an outcome."""

    RULE = "rule"
    """A rule of the protocol."""

    LIVENESS = "liveness"
    """The state that a cluster reaches once every fault is over, or among the nodes that faults in force leave
    connected."""

    CRASH = "crash"
    """The core raises no exception."""


class JudgedBy(Enum):
    """The oracle that judges a promise."""

    BOTH = "both"
    SIMULATOR = "simulator"
    """Needs the state of processes or disks at each step, or is about the simulator's own bounds in time."""

    VERIFICATION = "verification"
    """Compares two kinds of evidence of one run; the simulator has only one of them."""


class Exemption(Enum):
    """A case that a promise leaves out although its statement alone would include it; values describe the case."""

    DELETED_RECORDS = (
        "records that an administrator or retention had deleted, by a broker that had them, in the epoch of their "
        "leader or a later one"
    )
    DELETED_TOPICS = "what a topic promised that is deleted (one of the same name promises its own)"
    TOPICS_BEING_DELETED = (
        "what a topic promised whose deletion ZooKeeper holds a request for: its logs go before its nodes"
    )
    UNCLEAN_ELECTIONS = "what was committed before an unclean election, once that has been held"
    LOST_DISKS = "replicas whose disk lost its unflushed data with the power, or was replaced"
    KILLED_PROCESSES = "what a process that was killed did last, and could not tell of any more"
    LEAVING_REPLICAS = (
        "replicas that a reassignment removes: in a ZooKeeper cluster the leader is told to do without them before "
        "they leave the ISR (Z28)"
    )
    ACKS_1 = "what its leader alone acknowledged (acks=1)"
    NO_CANDIDATE = "what a partition holds that no replica may lead (whom an administrator elects decides its fate)"


class Keeper(Enum):
    """The processes whose rules a promise depends on, if processes of a cluster have different rules."""

    CLUSTER = "every process that the run had"
    """The promise is about the joint behaviour of several processes."""

    CONTROLLERS = "every controller process up to then"
    """One controller builds on records that another wrote, or publishes them."""

    BROKER = "every process that the broker had up to then"
    """One process of the broker continues with the log that another left."""

    PROCESS = "the process of the broker"
    """The promise is about one process's actions by its own knowledge; logs do not matter."""


class Member(NamedTuple):
    """A process of a node: its role, and its rules as texts."""

    role: NodeRole
    switches: Mapping[str, str]


ZOOKEEPER_RULE: Final = "controller_epoch_fence"
"""A rule that every ZooKeeper cluster names among its switches, and no other."""


class Promise(msgspec.Struct, frozen=True, kw_only=True):
    """One promise.

    Attributes:
        kind: the subject.
        statement: the condition that must hold.
        switches: by name, the values under which the promise is made; empty if always.
        judged_by: the oracles that look for violations.
        only_of: the one kind of cluster that it is made for; ``None`` for both kinds. Promises of KRaft are about
            commits of the controller, or follow from its log and heartbeats; those of ZooKeeper are about its nodes.
        exempts: cases that are no violation, for every oracle that judges it. Each oracle looks an exemption up here
            (``leaves_out``), so that it cannot use one that is not listed.
        keeper: the processes whose rules it depends on. Only their switches matter: a finding about a process is
            valid if those processes had the switches, whatever rules others lacked.
    """

    kind: PromiseKind
    statement: str
    switches: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    judged_by: JudgedBy = JudgedBy.BOTH
    only_of: ClusterKind | None = None
    exempts: tuple[Exemption, ...] = ()
    keeper: Keeper = Keeper.CLUSTER

    def leaves_out(self, exemption: Exemption) -> bool:
        """Returns whether the promise exempts a case."""
        return exemption in self.exempts


def _outcome(statement: str, *, judged_by: JudgedBy = JudgedBy.BOTH, exempts: tuple[Exemption, ...] = ()) -> Promise:
    return Promise(kind=PromiseKind.OUTCOME, statement=statement, judged_by=judged_by, exempts=exempts)


def _rule(
    statement: str,
    *,
    kind: PromiseKind = PromiseKind.RULE,
    judged_by: JudgedBy = JudgedBy.BOTH,
    only_of: ClusterKind | None = None,
    exempts: tuple[Exemption, ...] = (),
    keeper: Keeper = Keeper.CLUSTER,
    **switches: str | tuple[str, ...],
) -> Promise:
    values = {name: value if isinstance(value, tuple) else (value,) for name, value in switches.items()}
    return Promise(
        kind=kind,
        statement=statement,
        switches=MappingProxyType(values),
        judged_by=judged_by,
        only_of=only_of,
        exempts=exempts,
        keeper=keeper,
    )


def _liveness(
    statement: str, *, judged_by: JudgedBy = JudgedBy.SIMULATOR, only_of: ClusterKind | None = None
) -> Promise:
    return Promise(kind=PromiseKind.LIVENESS, statement=statement, judged_by=judged_by, only_of=only_of)


def _zookeeper(
    statement: str,
    *,
    judged_by: JudgedBy = JudgedBy.BOTH,
    exempts: tuple[Exemption, ...] = (),
    **switches: tuple[str, ...],
) -> Promise:
    return Promise(
        exempts=exempts,
        kind=PromiseKind.RULE,
        statement=statement,
        switches=MappingProxyType(switches),
        judged_by=judged_by,
        only_of=ClusterKind.ZOOKEEPER,
    )


def _quorum(statement: str, *, judged_by: JudgedBy = JudgedBy.BOTH, exempts: tuple[Exemption, ...] = ()) -> Promise:
    return Promise(
        kind=PromiseKind.OUTCOME,
        statement=statement,
        judged_by=judged_by,
        only_of=ClusterKind.KRAFT,
        exempts=exempts,
    )


def _crash(statement: str) -> Promise:
    return Promise(kind=PromiseKind.CRASH, statement=statement, judged_by=JudgedBy.SIMULATOR)


PROMISES: Final[Mapping[str, Promise]] = MappingProxyType(
    {
        "D1": _outcome(
            "Every record acknowledged with acks=all is on every later leader and on the last one, at its offset and "
            "with its CRC, and the final consumer reads it. A broker that restarts and leads again in the same epoch "
            "counts as a later leader.",
            exempts=(
                Exemption.DELETED_RECORDS,
                Exemption.DELETED_TOPICS,
                Exemption.ACKS_1,
                Exemption.NO_CANDIDATE,
            ),
        ),
        "D2": _outcome(
            "Unless an election was unclean, a leader's log ends at or above every high watermark of earlier leaders, "
            "and of its own previous process.",
            exempts=(Exemption.UNCLEAN_ELECTIONS,),
        ),
        "D3": Promise(
            kind=PromiseKind.CANDIDATE,
            statement="A running member of the ISR or the ELR has every committed record.",
            exempts=(
                Exemption.DELETED_TOPICS,
                Exemption.TOPICS_BEING_DELETED,
                Exemption.UNCLEAN_ELECTIONS,
                Exemption.LOST_DISKS,
                Exemption.KILLED_PROCESSES,
                Exemption.LEAVING_REPLICAS,
            ),
        ),
        "D4": _outcome(
            "A record acknowledged with acks=all is on at least one replica, as long as fewer replicas lost unflushed "
            "data than held it.",
            exempts=(
                Exemption.DELETED_RECORDS,
                Exemption.DELETED_TOPICS,
                Exemption.LOST_DISKS,
                Exemption.ACKS_1,
            ),
        ),
        "D5": _outcome(
            "A record that a consumer received is still at its offset on every later leader, also if that is the same "
            "broker after a restart.",
            exempts=(Exemption.DELETED_RECORDS, Exemption.DELETED_TOPICS),
        ),
        "D6": _outcome("Below the lower of their high watermarks, two replicas' logs are equal, batch by batch."),
        "D7": _outcome(
            "If two logs have a batch with the same offset and leader epoch, it is the same batch.",
            exempts=(Exemption.DELETED_RECORDS,),
        ),
        "D8": _rule(
            "Leader epochs do not fall along a log, a leader appends in its own epoch, and the epoch cache matches the "
            "log.",
            exempts=(Exemption.DELETED_RECORDS,),
            truncation="leader_epoch",
            truncation_sync="on",
            roles_after_registration="on",
            recovery_trims_epochs="on",
        ),
        "D9": _rule("Log start offset <= high watermark <= log end offset, and a log has no gaps."),
        "D10": _outcome(
            "Every batch that is stored, appended by a leader or consumed was sent by a producer to that partition, "
            "except those that coordinators write: records of internal topics, and markers of transactions."
        ),
        "D11": _outcome(
            "A batch that a broker reported to its producer as not appended is in no log and reaches no consumer."
        ),
        "D12": _outcome(
            "A leader's log has a batch of an idempotent producer once, any other batch at most once per attempt."
        ),
        "D13": _outcome("In a leader's log the sequence numbers of a producer id and epoch rise with the offsets."),
        "D14": _outcome(
            "Of two batches acknowledged with acks=all, one that was sent after the other was acknowledged has the "
            "higher offset in that partition.",
            exempts=(Exemption.DELETED_TOPICS, Exemption.ACKS_1),
        ),
        "D15": _outcome(
            "No follower truncates a committed record, unless an election since was unclean.",
            exempts=(Exemption.DELETED_RECORDS, Exemption.UNCLEAN_ELECTIONS),
        ),
        "D16": _outcome("A consumer receives no batch at or above the high watermark of the broker that serves it."),
        "D17": _outcome(
            "A batch that was damaged on a disk is not passed on: no consumer receives it and no replica appends it.",
            judged_by=JudgedBy.VERIFICATION,
        ),
        "C1": _outcome(
            "Between two seeks a consumer receives each offset of a partition once, in order, without a gap."
        ),
        "C2": _outcome(
            "A record acknowledged with acks=all reaches some consumer if a consumer has read the partition from below "
            "the record's offset to above it.",
            exempts=(Exemption.DELETED_TOPICS, Exemption.ACKS_1),
        ),
        "C3": _outcome(
            "Once a client has read up to an offset, no broker answers it that the log ends before that offset.",
            exempts=(Exemption.DELETED_RECORDS,),
        ),
        "C4": _outcome(
            "A consumer that goes on at its old offset in a topic that was created again under the same name is given "
            "every record that was acknowledged with acks=all below that offset.",
            exempts=(Exemption.DELETED_RECORDS, Exemption.DELETED_TOPICS, Exemption.ACKS_1),
        ),
        "C5": _outcome(
            "A consumer group whose commit of a position was acknowledged gets no lower position until it commits one.",
            judged_by=JudgedBy.VERIFICATION,
        ),
        "X1": _outcome(
            "A read_committed consumer receives no record of an aborted transaction: one that was reported as aborted "
            "to its producer, or has an abort marker in any partition."
        ),
        "X2": _outcome("A transaction has the same marker, commit or abort, in all of its partitions."),
        "X3": _outcome(
            "If a producer's commit of a transaction was acknowledged, every acknowledged record of the transaction is "
            "in the log once, and committed there.",
            exempts=(Exemption.DELETED_RECORDS, Exemption.DELETED_TOPICS),
        ),
        "X4": _outcome(
            "A reader of committed records is given no record of a transaction before each of its batches has an "
            "outcome: only then can its producer ask for it to be committed. Nor is it told that a record is stable "
            "whose transaction is aborted afterwards."
        ),
        "X5": _outcome(
            "Once every fault is over, no transaction stays open for longer than three times together: its timeout, "
            "the interval of the coordinator's check for late transactions, and the coordinator's request timeout "
            "(request.timeout.ms)."
        ),
        "X6": _outcome(
            "Nothing of a producer that another session of its transactional id has fenced is committed: no record "
            "that it sends afterwards, and no record that it left behind, by a commit of the other session."
        ),
        "X7": _outcome(
            "Each record that a group reads in transactions is read in exactly one committed transaction; only records "
            "after the last record of all committed transactions are in none.",
            exempts=(Exemption.DELETED_RECORDS, Exemption.DELETED_TOPICS),
        ),
        "X8": _outcome(
            "A group's position is one that the group committed: not a refused one, nor one of an aborted transaction. "
            "X9 judges a position that went back because the log ends before it."
        ),
        "X9": _outcome(
            "A group goes on at its last committed position: it receives no record again and skips none, not even a "
            "record that was written below that position after the commit.",
            exempts=(Exemption.DELETED_RECORDS, Exemption.DELETED_TOPICS),
        ),
        "X10": _outcome("A read_committed consumer goes from one position to the next, and skips no committed record."),
        "E1": _outcome(
            "Each final log holds exactly the batches that its node's event log says it must hold.",
            exempts=(Exemption.KILLED_PROCESSES,),
            judged_by=JudgedBy.VERIFICATION,
        ),
        "H1": _rule(
            "A high watermark does not pass the lowest log end offset that the leader knows of the maximal ISR's "
            "members; offsets that it learned before its term do not count."
        ),
        "H2": _rule(
            "A leader's high watermark moves only while the committed ISR that the leader knows has min(min ISR, "
            "replication factor) members.",
            keeper=Keeper.PROCESS,
            hw_requires_min_isr="on",
        ),
        "H3": _rule("A leader's high watermark does not go back within its term."),
        "H4": _rule(
            "The maximal ISR of a leader with enough members in sync contains every member of the controller's ISR and "
            "ELR.",
            elr="on",
            maximal_isr="on",
            ap_partition_epoch_check="on",
            elr_within_replicas="on",
            refusals_are_final="on",
            answers_await_metadata="on",
        ),
        "H5": _rule(
            "The maximal ISR is the union of the committed and the proposed ISR, and one proposal is in flight at a "
            "time.",
            judged_by=JudgedBy.SIMULATOR,
            keeper=Keeper.PROCESS,
            maximal_isr="on",
        ),
        "R1": _rule(
            "A coordinator has at most one transition of a transactional id under way: the next one in the same epoch "
            "begins once the previous one has taken effect or was given up."
        ),
        "R2": _rule(
            "A coordinator completes a transaction only once each of its partitions has the marker, or is deleted."
        ),
        "R3": _rule("In a log the coordinator epochs of the markers of one producer id do not fall."),
        "R4": _rule(
            "A coordinator has markers written only for a decision whose record is committed.",
            keeper=Keeper.PROCESS,
            coordinator_awaits_commit="on",
        ),
        "R5": _rule("In a log the epoch of a producer id does not fall, neither of its records nor of its markers."),
        "R6": _rule(
            "The last stable offset is not above the high watermark, and not below the batch in which the log starts."
        ),
        "R7": _outcome(
            "The generations of a group do not fall: once the group has committed a position, a member that asks to "
            "join gets no generation lower than one that another member was in already."
        ),
        "R8": _outcome("Two members of one generation of a group never own a partition at the same time."),
        "R9": _rule(
            "A coordinator returns a group's position only once its record is committed, and for a position of a "
            "transaction also the transaction's marker."
        ),
        "R10": _rule(
            "A transactional id changes its state only as Kafka's table of transitions allows, and from the state that "
            "took effect last."
        ),
        "R11": _rule(
            "The transactions of a log that a broker takes for open, and those that it reports to consumers as "
            "aborted, are those that the log's batches show.",
            judged_by=JudgedBy.SIMULATOR,
        ),
        "R12": _rule(
            "A group coordinator returns the positions that the records of its log have, up to the high watermark.",
            judged_by=JudgedBy.SIMULATOR,
        ),
        "M1": _rule(
            "An ISR contains replicas only, has no member in common with the ELR, and a leader is a member of it.",
            only_of=ClusterKind.KRAFT,
        ),
        "M2": _rule(
            "While ELR is on, every member of an ISR is registered, unfenced and not shutting down when the ISR is "
            "committed.",
            keeper=Keeper.CONTROLLERS,
            elr="on",
            cancel_requires_min_isr="on",
        ),
        "M3": _rule(
            "While the ISR has min ISR members or more, ELR and last-known ELR are empty.",
            keeper=Keeper.CONTROLLERS,
            elr="on",
        ),
        "M4": _rule(
            "Once ISR and ELR together have min ISR members, they keep that many, except after an unclean restart or "
            "election, or a change of min ISR or of the replicas.",
            keeper=Keeper.CONTROLLERS,
            elr="on",
            ap_partition_epoch_check="on",
        ),
        "M5": _rule(
            "After an unclean registration a broker is in no ISR or ELR and leads nothing, until an AlterPartition "
            "names its current broker epoch or it is elected uncleanly.",
            elr="on",
            unclean_detection="on",
            ap_broker_epoch_check="on",
        ),
        "M6": _rule(
            "A new leader was in the ISR, or in the ELR of a partition without ISR; any other one leads alone, "
            "RECOVERING, and only if no candidate was active or an administrator designated it."
        ),
        "M7": _rule(
            "RECOVERING begins with an unclean election, keeps the ISR at one member, and ends with an AlterPartition "
            "of the leader alone.",
            only_of=ClusterKind.KRAFT,
        ),
        "M8": _outcome(
            "A leader epoch of a partition has one leader: in the controller's records, among the brokers and in the "
            "logs."
        ),
        "M9": _rule(
            "Each committed change raises the partition epoch by one and the leader epoch by at most one, by one if "
            "the leader changes; no broker goes back to an older partition epoch.",
            only_of=ClusterKind.KRAFT,
        ),
        "M10": _rule(
            "An accepted AlterPartition names the current leader, leader epoch and partition epoch, an ISR of replicas "
            "with the leader in it, and the broker epochs of registered members.",
            ap_partition_epoch_check="on",
            ap_broker_epoch_check="on",
            roles_after_registration="on",
            only_of=ClusterKind.KRAFT,
        ),
        "M11": _rule(
            "A member joins an ISR with an AlterPartition, or as the leader of an election from the ELR or an unclean "
            "one.",
            keeper=Keeper.CONTROLLERS,
            cancel_requires_min_isr="on",
        ),
        "M12": _rule("Broker epochs are unique, and those of one broker rise with each registration."),
        "M13": _rule("A broker acts only on states that the controller committed.", only_of=ClusterKind.KRAFT),
        "M14": _outcome("One controller writes at a time, and a metadata offset has one record."),
        "Q1": _quorum("In an epoch of the quorum one controller leads, and a voter votes for one candidate."),
        "Q2": _quorum(
            "Two metadata logs that have a record with the same offset and epoch are equal up to it, and the epochs of "
            "a log never fall."
        ),
        "Q3": _quorum(
            "A controller that is elected has every metadata record that was committed in an earlier epoch, as long as "
            "fewer than a majority of the controllers' disks were lost.",
        ),
        "Q4": _quorum(
            "Below the lower of their high watermarks, two metadata logs are equal, as long as fewer than a majority "
            "of the controllers' disks were lost."
        ),
        "Q5": _quorum(
            "The last leader of the quorum has every metadata record that was committed, as long as fewer than a "
            "majority of the controllers' disks were lost.",
        ),
        "Q6": _quorum(
            "A controller's epoch never falls on one disk; its high watermark never falls in one process, which "
            "truncates nothing below it."
        ),
        "Q7": _quorum(
            "A leader of the quorum commits only records that a majority of the voters has on disk, up to a record of "
            "its own epoch.",
            judged_by=JudgedBy.SIMULATOR,
        ),
        "Q8": _quorum(
            "A leader of the quorum is not deposed while no fault affects it and a majority of the voters.",
            judged_by=JudgedBy.SIMULATOR,
        ),
        "Q9": _quorum(
            "A leader of the quorum that no majority of the voters can reach resigns within 1.5 fetch timeouts.",
            judged_by=JudgedBy.SIMULATOR,
        ),
        "M15": _rule(
            "A log is used only for the topic whose id it was created with, and a new topic's log starts empty.",
            keeper=Keeper.BROKER,
            stray_cleanup=("delete", "rename"),
        ),
        "M16": _rule(
            "A reassignment completes once every added replica is in the ISR, and, by the era's rule, min ISR members "
            "or every target; removing a replica raises the leader epoch.",
            only_of=ClusterKind.KRAFT,
        ),
        "M17": _rule("An ELR contains replicas only.", keeper=Keeper.CONTROLLERS, elr_within_replicas="on"),
        "M18": _rule(
            "An uncleanly elected leader appends and acknowledges nothing before its recovery step is complete.",
            keeper=Keeper.PROCESS,
            recovering_gate="on",
        ),
        "M19": _rule(
            "A reassignment that is cancelled leaves min ISR members in the ISR.",
            keeper=Keeper.CONTROLLERS,
            cancel_requires_min_isr="on",
        ),
        "M20": _rule(
            "An unclean recovery elects, by the answers of the replicas, the longest log of the highest epoch; with "
            "strategy Balanced the last known ELR and leader have answered. Before the timeout every replica has "
            "answered, or, by the era's rule and with Aggressive, every replica that could lead. The strategy is the "
            "configured or the requested one.",
            only_of=ClusterKind.KRAFT,
        ),
        "M21": _rule(
            "The controller uses the min ISR that is configured for the topic, or the partition's number of replicas "
            "if that is lower.",
            keeper=Keeper.CONTROLLERS,
            min_isr_per_partition="on",
            only_of=ClusterKind.KRAFT,
        ),
        "Z1": _zookeeper(
            "Once no change is under way, the controller's copy of a partition's state equals its state node.",
            judged_by=JudgedBy.SIMULATOR,
        ),
        "Z2": _zookeeper("The controller epoch that a broker knows does not fall.", judged_by=JudgedBy.SIMULATOR),
        "Z3": _zookeeper(
            "A leader's high watermark does not pass the log end offset of a member of the last ISR that the state "
            "node had in its leader epoch.",
            exempts=(Exemption.KILLED_PROCESSES, Exemption.LEAVING_REPLICAS),
            maximal_isr=("on",),
        ),
        "Z4": _zookeeper(
            "No broker removes the log of a partition while it is in the partition's ISR, unless the topic is being "
            "deleted.",
            control_broker_epoch_check=("on",),
            stop_replica_epoch=("greater", "not_lower"),
        ),
        "Z5": _zookeeper("Once no change is under way, no notification of an ISR change is left."),
        "Z6": _zookeeper(
            "A state node's leader is in its ISR and changes only with the leader epoch, which never falls, and a "
            "broker leads in an epoch only if the node named it as leader of that epoch."
        ),
        "Z7": _zookeeper(
            "Each write of a state node raises its version by one and the leader epoch by one or not at all."
        ),
        "Z8": _zookeeper(
            "A broker takes a role only from a LeaderAndIsr that was sent for its current registration or a later one, "
            "by the newest controller that it knows of.",
            judged_by=JudgedBy.SIMULATOR,
            control_broker_epoch_check=("on",),
        ),
        "Z9": _zookeeper(
            "A change of the ISR without a new leader epoch is written by the leader itself, or as the leader "
            "requested it, at the version that it named, if the release's checks of AlterIsr and AlterPartition allow "
            "it; and a leader takes an ISR for committed only if its state node had it.",
            judged_by=JudgedBy.SIMULATOR,
        ),
        "L1": _liveness("Every broker has applied all metadata.", judged_by=JudgedBy.BOTH, only_of=ClusterKind.KRAFT),
        "L2": _liveness("Every broker runs and is unfenced.", judged_by=JudgedBy.BOTH),
        "L3": _liveness("Every partition has a leader, unless no replica may lead it.", judged_by=JudgedBy.BOTH),
        "L4": _liveness("Every ISR is all replicas, and no AlterPartition is in flight.", judged_by=JudgedBy.BOTH),
        "L5": _liveness("Every request is answered, or its client gives it up."),
        "L6": _liveness(
            "Replicas are full copies, high watermarks are at the log ends, and a consumer reaches them.",
            judged_by=JudgedBy.BOTH,
        ),
        "L7": _rule(
            "No broker removes the log of a partition that is assigned to it, and none keeps another log: a stray is "
            "found, and deleted no earlier than stray.delete.delay.ms and not long after.",
            kind=PromiseKind.LIVENESS,
            keeper=Keeper.BROKER,
            stray_cleanup=("delete", "rename"),
        ),
        "L8": _rule(
            "No partition is adding or removing replicas.",
            kind=PromiseKind.LIVENESS,
            exempts=(Exemption.DELETED_TOPICS,),
        ),
        "L9": _liveness("The state of the cluster stops changing."),
        "L10": _liveness(
            "While the controller runs, a partition has a leader soon after a member of its ISR or ELR is active, and, "
            "while the guarantee holds, soon after all replicas are active that are not outstanding. If the strategy "
            "allows an unclean leader, it has one soon after the replicas that the strategy waits for are active."
        ),
        "L11": _liveness(
            "A leader's records are committed soon while min ISR replicas, including the leader, are connected to the "
            "leader and the controller; and the leader acknowledges committed records before the request times out."
        ),
        "L12": _liveness(
            "A broker from which the controller receives nothing is fenced soon; a registered broker that is connected "
            "to the controller is unfenced soon."
        ),
        "L13": _liveness(
            "A member of the ISR that cannot fetch the leader's records leaves the ISR soon, while the leader is "
            "connected to the controller."
        ),
        "InvariantError": _crash("No process of the core violates an invariant of its own state."),
        "Exception": _crash("No process of the core raises an unexpected exception."),
    }
)
"""The promises by id, in the order in which reports list them."""

OUTCOME_CHECKS: Final = tuple(
    check_id
    for check_id, promise in PROMISES.items()
    if promise.kind is PromiseKind.OUTCOME and promise.judged_by is not JudgedBy.SIMULATOR
)
"""Outcome checks that ``verify`` judges in every run, so that a scenario may expect violations of them."""


def is_promised(check_id: str, switches: Mapping[str, str]) -> bool:
    """Returns whether a check's promise is made in a run with these switches, given as texts.

    The value of a missing switch is unknown, so a promise that depends on it is not made.
    """
    if PROMISES[check_id].only_of not in (None, _kind_of(switches)):
        return False
    return all(switches.get(name) in values for name, values in PROMISES[check_id].switches.items())


def is_promised_by_all(check_id: str, members: Iterable[Member]) -> bool:
    """Returns whether a check's promise is made in a cluster: each process that it depends on must have the rules.

    A process without the rules leaves a log or answers that others build on, even after the process was replaced.

    Args:
        check_id: of the check.
        members: the processes; if empty, promises that depend on rules are not made.
    """
    keeper = PROMISES[check_id].keeper
    everyone = tuple(members)
    known = [member for member in everyone if _matters(member, keeper)] or everyone
    return all(is_promised(check_id, switches) for switches in ([each.switches for each in known] or [{}]))


def _matters(member: Member, keeper: Keeper) -> bool:
    is_broker = member.role is NodeRole.BROKER
    match keeper:
        case Keeper.CLUSTER:
            return True
        case Keeper.CONTROLLERS:  # the controller of a ZooKeeper cluster is one of its brokers
            return not is_broker or _kind_of(member.switches) is ClusterKind.ZOOKEEPER
        case Keeper.BROKER | Keeper.PROCESS:
            return is_broker


def rules_named_beside(switches: Mapping[str, str]) -> frozenset[str]:
    """Returns the rules that promises name for this kind of cluster, which every node of that kind records."""
    kinds = (None, _kind_of(switches))
    return frozenset(name for each in PROMISES.values() if each.only_of in kinds for name in each.switches)


def _kind_of(switches: Mapping[str, str]) -> ClusterKind:
    return ClusterKind.ZOOKEEPER if ZOOKEEPER_RULE in switches else ClusterKind.KRAFT
