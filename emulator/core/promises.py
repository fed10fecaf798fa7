"""The promises that the emulator makes of every run: the one table of checks by id.

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
    """The processes whose rules a promise rests on, where those of a cluster differ; values say it in words."""

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
            "with its CRC, and the final consumer reads it. A broker that is restarted and leads again in its own "
            "epoch is a later leader, too.",
            exempts=(
                Exemption.DELETED_RECORDS,
                Exemption.DELETED_TOPICS,
                Exemption.ACKS_1,
                Exemption.NO_CANDIDATE,
            ),
        ),
        "D2": _outcome(
            "Unless an election was unclean, a leader's log ends at or above every high watermark of earlier leaders, "
            "its own former process among them.",
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
            "A record that a consumer received is still at its offset on every later leader, be it the same broker "
            "after a restart.",
            exempts=(Exemption.DELETED_RECORDS, Exemption.DELETED_TOPICS),
        ),
        "D6": _outcome("Below the lower of their high watermarks, two replicas' logs are equal, batch by batch."),
        "D7": _outcome(
            "Two logs that have a batch of the same offset and leader epoch have the same batch.",
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
            "but for what coordinators write: internal topics, and the ends of transactions."
        ),
        "D11": _outcome(
            "A batch whose producer was told that it was not appended is in no log and reaches no consumer."
        ),
        "D12": _outcome("In a leader's log an idempotent batch is stored once, another one at most once per attempt."),
        "D13": _outcome("In a leader's log the sequence numbers of a producer and its epoch rise with the offsets."),
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
            "A batch that was damaged on a disk is given to nobody: no consumer receives it and no replica takes it.",
            judged_by=JudgedBy.VERIFICATION,
        ),
        "C1": _outcome(
            "Between two seeks a consumer receives each offset of a partition once, in order, without a gap."
        ),
        "C2": _outcome(
            "A record acknowledged with acks=all reaches some consumer if one has read the partition from below it to "
            "above it.",
            exempts=(Exemption.DELETED_TOPICS, Exemption.ACKS_1),
        ),
        "C3": _outcome(
            "No client that has read up to an offset is told later that the log ends before it.",
            exempts=(Exemption.DELETED_RECORDS,),
        ),
        "C4": _outcome(
            "A consumer that goes on at its old offset in a topic that was created again under the same name is given "
            "every record that was acknowledged with acks=all below that offset.",
            exempts=(Exemption.DELETED_RECORDS, Exemption.DELETED_TOPICS, Exemption.ACKS_1),
        ),
        "C5": _outcome(
            "A consumer group that was told that a position is committed is given no lower one, until it commits that.",
            judged_by=JudgedBy.VERIFICATION,
        ),
        "X1": _outcome(
            "A reader of committed records is given no record of a transaction that is aborted: as its producer was "
            "told, or by its end in any partition."
        ),
        "X2": _outcome("A transaction has the same end in all of its partitions."),
        "X3": _outcome(
            "Every record that was acknowledged in a transaction whose producer was told that it is committed is in "
            "the log once, and committed there.",
            exempts=(Exemption.DELETED_RECORDS, Exemption.DELETED_TOPICS),
        ),
        "X4": _outcome(
            "A reader of committed records is given no record of a transaction before each of its batches has an "
            "outcome: only then can its producer ask for it to be committed."
        ),
        "X5": _outcome(
            "Once every fault is over, no transaction stays open for longer than its timeout, the coordinator's check "
            "for those that are late, and the time after which it gives an unanswered request up "
            "(request.timeout.ms)."
        ),
        "X6": _outcome(
            "Nothing of a producer that another session with its transactional id has fenced is committed: no record "
            "that it sends afterwards, and none that it left behind by an end of that session."
        ),
        "X7": _outcome(
            "Of the records that a group reads in transactions, each is read in one transaction that is committed: not "
            "in two, and in none only while it is behind all that was read in committed ones.",
            exempts=(Exemption.DELETED_RECORDS, Exemption.DELETED_TOPICS),
        ),
        "X8": _outcome(
            "The position of a group is one that it committed: not one that was refused, nor one of a transaction that "
            "is aborted. One that went back, as its log ends before it, is judged by X9."
        ),
        "X9": _outcome(
            "A group goes on where its last committed position is: it is given no record again, and leaves none out, "
            "nor any that was written before that position after it had been committed.",
            exempts=(Exemption.DELETED_RECORDS, Exemption.DELETED_TOPICS),
        ),
        "X10": _outcome(
            "A reader of committed records goes from one position to the next, and past no committed record that it is "
            "not given."
        ),
        "E1": _outcome(
            "Each final log holds exactly the batches that its node's event log says it must hold.",
            exempts=(Exemption.KILLED_PROCESSES,),
            judged_by=JudgedBy.VERIFICATION,
        ),
        "H1": _rule(
            "A high watermark does not pass the least log end offset that the leader knows of in the maximal ISR; one "
            "that it learned before its term does not count."
        ),
        "H2": _rule(
            "A leader's high watermark moves only while the ISR that the controller committed, as the leader knows it, "
            "has min(min ISR, replication factor) members.",
            keeper=Keeper.PROCESS,
            hw_requires_min_isr="on",
        ),
        "H3": _rule("Within one leader's term its high watermark does not go back."),
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
            "The maximal ISR is the committed and the proposed one, and one proposal is in flight at a time.",
            judged_by=JudgedBy.SIMULATOR,
            keeper=Keeper.PROCESS,
            maximal_isr="on",
        ),
        "R1": _rule(
            "A coordinator has one transition of a transactional id under way at most: the next one in its epoch "
            "begins once that has taken effect or was given up."
        ),
        "R2": _rule(
            "A coordinator completes a transaction only once each of its partitions has the marker, or is deleted."
        ),
        "R3": _rule("In a log the coordinator epochs of the markers of one producer id do not fall."),
        "R4": _rule(
            "A coordinator has markers written only of a decision whose record is committed.",
            keeper=Keeper.PROCESS,
            coordinator_awaits_commit="on",
        ),
        "R5": _rule("In a log the epoch of a producer id does not fall, neither of its records nor of its markers."),
        "R6": _rule(
            "Readers of committed records are held at no offset above the high watermark, and at none below the batch "
            "in which the log starts."
        ),
        "R7": _outcome(
            "The generations of a group do not fall: a member that asks to join comes into none before one that "
            "another was in already, once the group has committed a position."
        ),
        "R8": _outcome("Two members of one generation of a group never own a partition at the same time."),
        "R9": _rule(
            "A coordinator returns a group's position only once its record is committed, and the marker of its "
            "transaction if it is of one."
        ),
        "R10": _rule(
            "A transactional id goes from one state to another as Kafka's table of transitions allows, and from the "
            "one that took effect last."
        ),
        "R11": _rule(
            "The transactions that a broker takes for open in a log, and those that it tells readers are aborted, are "
            "those that the log's batches say.",
            judged_by=JudgedBy.SIMULATOR,
        ),
        "R12": _rule(
            "The positions that a coordinator of groups answers are what the records of its log say, up to the high "
            "watermark.",
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
            "ISR and ELR together have min ISR members once they had them, until an unclean restart or election, "
            "another min ISR or other replicas take some away.",
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
            "A leader epoch of a partition belongs to one broker: by the controller, by the brokers and in the logs."
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
        "M14": _outcome("One controller writes at a time, and a metadata offset stands for one record."),
        "Q1": _quorum("In an epoch of the quorum one controller leads, and a voter votes for one candidate."),
        "Q2": _quorum(
            "Two metadata logs that have a record of one offset and epoch are equal up to there, and the epochs of a "
            "log never fall."
        ),
        "Q3": _quorum(
            "A controller that is elected has every metadata record that was committed in an epoch before, as long as "
            "fewer than a majority of the controllers' disks were lost.",
        ),
        "Q4": _quorum(
            "Below the lower of their high watermarks, two metadata logs are equal, as long as fewer than a majority "
            "of the controllers' disks were lost."
        ),
        "Q5": _quorum(
            "Whoever leads the quorum last has every metadata record that was committed, as long as fewer than a "
            "majority of the controllers' disks were lost.",
        ),
        "Q6": _quorum(
            "The epoch of a controller never falls on one disk, nor its high watermark in one process, which cuts "
            "nothing below that."
        ),
        "Q7": _quorum(
            "A leader of the quorum commits what a majority of the voters has durably, with a record of its own epoch.",
            judged_by=JudgedBy.SIMULATOR,
        ),
        "Q8": _quorum(
            "A leader of the quorum that is undisturbed together with a majority of the voters is not deposed.",
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
            "A reassignment completes with every replica in the ISR that it adds, and with min ISR members or every "
            "target, by the era's rule; a replica that leaves ends the leader epoch.",
            only_of=ClusterKind.KRAFT,
        ),
        "M17": _rule("An ELR contains replicas only.", keeper=Keeper.CONTROLLERS, elr_within_replicas="on"),
        "M18": _rule(
            "Until its recovery step is through, an uncleanly elected leader appends and acknowledges nothing.",
            keeper=Keeper.PROCESS,
            recovering_gate="on",
        ),
        "M19": _rule(
            "A reassignment that is cancelled leaves min ISR members in the ISR.",
            keeper=Keeper.CONTROLLERS,
            cancel_requires_min_isr="on",
        ),
        "M20": _rule(
            "An unclean recovery elects the longest log of the highest epoch among the replicas that answered, by what "
            "they answered; with strategy Balanced the last known ELR and leader are among them. Before the timeout "
            "every replica has answered, or, by the era's rule and with Aggressive, every one that could lead. The "
            "strategy is the one that is configured, or asked for.",
            only_of=ClusterKind.KRAFT,
        ),
        "M21": _rule(
            "The controller goes by the min ISR that is configured for the topic, or by the partition's number of "
            "replicas where that is less.",
            keeper=Keeper.CONTROLLERS,
            min_isr_per_partition="on",
            only_of=ClusterKind.KRAFT,
        ),
        "Z1": _zookeeper(
            "Once all is quiet, what the controller believes of a partition is what its state node says.",
            judged_by=JudgedBy.SIMULATOR,
        ),
        "Z2": _zookeeper("The controller epoch that a broker knows does not go back.", judged_by=JudgedBy.SIMULATOR),
        "Z3": _zookeeper(
            "A leader's high watermark does not pass the log end offset of a member of the last ISR that the state "
            "node had in its leader epoch.",
            exempts=(Exemption.KILLED_PROCESSES, Exemption.LEAVING_REPLICAS),
            maximal_isr=("on",),
        ),
        "Z4": _zookeeper(
            "No broker removes a log of a partition of which it is a replica in the ISR, unless the topic is being "
            "deleted.",
            control_broker_epoch_check=("on",),
            stop_replica_epoch=("greater", "not_lower"),
        ),
        "Z5": _zookeeper("Once all is quiet, no notification of an ISR change is left."),
        "Z6": _zookeeper(
            "A state node's leader is in its ISR and changes only with the leader epoch, which never goes back, and "
            "whoever leads in an epoch is the leader that the node had with it."
        ),
        "Z7": _zookeeper(
            "Each write of a state node raises its version by one and the leader epoch by one or not at all."
        ),
        "Z8": _zookeeper(
            "A broker takes a role only from a LeaderAndIsr that was meant for this registration of it or a later one, "
            "of a controller that none it has heard of replaced.",
            judged_by=JudgedBy.SIMULATOR,
            control_broker_epoch_check=("on",),
        ),
        "Z9": _zookeeper(
            "An ISR that leaves the leader epoch is written by the leader itself, or as the leader asked for it, at "
            "the version that it named, if the release's checks of AlterIsr and AlterPartition allow it; and a leader "
            "takes for committed what its node had.",
            judged_by=JudgedBy.SIMULATOR,
        ),
        "L1": _liveness("Every broker has applied all metadata.", judged_by=JudgedBy.BOTH, only_of=ClusterKind.KRAFT),
        "L2": _liveness("Every broker runs and is unfenced.", judged_by=JudgedBy.BOTH),
        "L3": _liveness("Every partition has a leader, unless no replica may lead it.", judged_by=JudgedBy.BOTH),
        "L4": _liveness("Every ISR is all replicas, and no AlterPartition is in flight.", judged_by=JudgedBy.BOTH),
        "L5": _liveness("Every request is answered, or given up by its client."),
        "L6": _liveness(
            "Replicas are full copies, high watermarks are at the log ends, and a consumer reaches them.",
            judged_by=JudgedBy.BOTH,
        ),
        "L7": _rule(
            "No broker removes a log of a partition that is its own, and none keeps one that is not: a stray is "
            "noticed, and deleted no earlier than stray.delete.delay.ms and not long after.",
            kind=PromiseKind.LIVENESS,
            keeper=Keeper.BROKER,
            stray_cleanup=("delete", "rename"),
        ),
        "L8": _rule(
            "No partition is adding or removing replicas.",
            kind=PromiseKind.LIVENESS,
            exempts=(Exemption.DELETED_TOPICS,),
        ),
        "L9": _liveness("Nothing goes on changing."),
        "L10": _liveness(
            "While the controller runs, a partition is led soon after a member of its ISR or ELR is active, and, while "
            "the guarantee holds, soon after all replicas are active that are not outstanding. Where the strategy "
            "allows an unclean leader, it is led soon after whoever that strategy waits for is active."
        ),
        "L11": _liveness(
            "What a leader has is committed soon, while min ISR replicas, the leader among them, are in touch with it "
            "and with the controller; and it acknowledges what it has committed, rather than have the request time out."
        ),
        "L12": _liveness(
            "A broker of which the controller hears nothing is fenced soon; one that is registered and in touch with "
            "it is unfenced soon."
        ),
        "L13": _liveness(
            "A member of the ISR that cannot fetch what the leader has leaves the ISR soon, while the leader is in "
            "touch with the controller."
        ),
        "InvariantError": _crash("No process of the core contradicts itself."),
        "Exception": _crash("No process of the core raises an unexpected exception."),
    }
)
"""The promises by id, in the order in which reports list them."""

OUTCOME_CHECKS: Final = tuple(
    check_id
    for check_id, promise in PROMISES.items()
    if promise.kind is PromiseKind.OUTCOME and promise.judged_by is not JudgedBy.SIMULATOR
)
"""Outcomes that are judged on every run that was left on disk, so that a scenario may expect violations of them."""


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
