"""The form of a check.

A check is a function over the facts of one partition, or of a whole cluster, that yields findings. No finding means
that the promise was kept there, provided that the run has what the check needs: its premises.
"""

from collections.abc import Callable, Iterable, Mapping, Set
from enum import Enum
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

import msgspec

from laststand.emulator.core.promises import Exemption
from laststand.emulator.verification.facts.cluster import ClusterFacts
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.rules.guarantee import Guarantee
from laststand.emulator.verification.tables.timeline import ProcessName


class Evidence(Enum):
    """The kinds of evidence; findings prove nothing unless the evidence that their check needs is complete."""

    EVENTS = "events"
    HISTORY = "history"
    FINAL_LOGS = "final logs"
    TOPIC_IDS = "topic ids"
    """Missing where topics have no ids: facts about a topic and its successor of the same name cannot be told apart."""


class Premise(Enum):
    """Something that must have happened in a run, or else the check has nothing to judge.

    The values are sentences about runs in which it did not happen.
    """

    NODES = "nothing is known of its nodes but what clients were told"
    OWN_WORD = "its nodes are Apache Kafka's, which write no events of their own"
    ACKED_ALL = "no record was acknowledged with acks=all"
    SENT_AFTER_ACK = "no batch was sent after another one of its partition was acknowledged with acks=all"
    REFUSED = "no producer was told that its batch was not appended"
    CONSUMED = "no consumer received a batch"
    CONSUMED_BY_EPOCH = "no consumer received a batch from a leader whose epoch is known"
    POLLED_AGAIN = "no live consumer asked again after it had received a batch"
    READ_AT_THE_END = "the final consumer read nothing"
    TOPIC_SUCCEEDED = "no consumer came to a topic that was created again under its name"
    STORED = "no leader appended a batch"
    REPLICATED = "no follower appended a batch"
    LOG_OPENED = "no log was opened"
    LOG_REMOVED = "no broker removed a log"
    TRUNCATED = "no log was truncated"
    FLIPPED = "no bit of a stored batch was flipped"
    FINAL_LOG = "no final log was found"
    FINAL_REPLICAS = "no partition has two final logs with records"
    SETTLED_RECORDS = "no final log of a settled leader has records"
    SETTLED_SEQUENCES = "no final log of a settled leader has two batches of one idempotent producer"
    HIGH_WATERMARK_MOVED = "no leader's high watermark moved"
    LED_AFTER_COMMIT = "no leader took over after a high watermark had moved"
    LED = "no broker became leader"
    COMMITTED = "the controller committed no partition"
    CHANGED = "no partition changed after its creation"
    TWO_REGISTRATIONS = "fewer than two registrations were committed"
    UNCLEAN_REGISTRATION = "no broker registered after an unclean shutdown"
    TWO_CONTROLLERS = "only one controller process committed records"
    QUORUM = "no leader of a quorum of controllers was elected"
    VOTERS_LOGS = "no two controllers of a quorum left their logs"
    LAST_LEADERS_LOG = "the metadata log of whoever led the quorum last is not there"
    QUORUM_DISKS = "a majority of the controllers' disks was replaced"
    ELECTED = "no leader was elected"
    UNCLEAN_ELECTION = "no election was unclean"
    LOGS_COMPARED = "no unclean recovery compared logs"
    RECOVERY_STARTED = "no uncleanly elected leader began to recover"
    BELOW_MIN_ISR = "no ISR fell below min ISR"
    ELR = "no partition had eligible leader replicas"
    ISR_GREW = "no ISR grew"
    PROPOSAL_ACCEPTED = "no AlterPartition was accepted"
    REASSIGNMENT = "no reassignment was begun"
    REASSIGNMENT_COMPLETED = "no reassignment was completed"
    REASSIGNMENT_CANCELLED = "no reassignment was cancelled"
    NOTIFIED = "no change of an ISR was notified in ZooKeeper"
    TRANSACTION = "no producer began a transaction"
    TRANSACTION_COMMITTED = "no producer was told that a transaction is committed"
    TRANSITION = "no coordinator recorded a transition of a transactional id"
    MARKERS_SENT = "no coordinator recorded that it had markers written"
    POSITION_RETURNED = "no coordinator recorded that it returned the position of a group"
    SETTLED_MARKERS = "no final log of a settled leader has the end of a transaction"
    SESSION_FOLLOWED = "no transactional producer began a second session"
    READ_IN_TRANSACTION = "nothing was read in a transaction that is committed"
    POSITION_COMMITTED = "no group read after it was to commit a position"
    READ_COMMITTED = "no reader of committed records was given any"
    POSITION_KEPT = "no consumer group asked for a position after one of its commits was answered"
    POSITION_FOLLOWED = "no group read after it was to commit a position, by itself or by its members"
    ASSIGNED_TWICE = "no group assigned its partitions to two members, or twice"
    SETTLED = "the cluster was not seen to settle once every fault was over"


class LostCommit(NamedTuple):
    """The loss of committed records, whatever their acks: the facts by which the guarantee is judged.

    Attributes:
        topic_id: of their topic.
        committed_at: end (exclusive) of the metadata that their leader had applied when it committed them.
        lacking_epoch: leader epoch of the first leader without them; ``None`` if only the final log lacks them.
        unelected_at: if that leader was restarted after its election, the end of the metadata (exclusive) by which it
            became leader again.
    """

    topic_id: str
    committed_at: int
    lacking_epoch: int | None
    unelected_at: int | None = None


class Finding(NamedTuple):
    """A violation of a promise.

    Attributes:
        position: an offset, epoch or metadata offset; orders the findings of a partition.
        sentence: the violation, in words.
        lost: the committed records that are lost, if any.
        guarantee: the kind of violation, if it does not follow from a loss.
        exempted_by: the exemption of the promise that applies: such a finding is reported, but is no violation.
        by: the process that broke the promise or reported it, if it was a single one.
    """

    position: int
    sentence: str
    lost: LostCommit | None = None
    guarantee: Guarantee | None = None
    exempted_by: Exemption | None = None
    by: ProcessName | None = None


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One promise and the function that judges it: over each partition, or over the cluster.

    Attributes:
        check_id: of ``laststand.emulator.core.promises``, which has its kind, its statement and its switches.
        name: its name, one word.
        source: the source of the rule: a KIP and its section, a class of Kafka, a paper.
        needs: evidence that must be whole for a finding to count; otherwise the check is ``unknown``. A check that
            needs no kind of evidence judges each line by itself.
        premises: events that must have happened for ``ok`` to mean anything; otherwise the check is ``not asked``.
        is_of_clients: whether the clients' history is enough to judge it; every other check has the premise ``NODES``.
    """

    check_id: str
    name: str
    source: str
    needs: frozenset[Evidence] = frozenset()
    premises: frozenset[Premise]
    is_of_clients: bool = False


class PartitionCheck(Check, frozen=True, kw_only=True):
    """A check that looks at one partition at a time."""

    find: Callable[[PartitionFacts], Iterable[Finding]]


class ClusterCheck(Check, frozen=True, kw_only=True):
    """A check of the controller's commits, whatever partition they are about."""

    find: Callable[[ClusterFacts], Iterable[Finding]]


_FactsT = TypeVar("_FactsT", PartitionFacts, ClusterFacts)
_Find: TypeAlias = Callable[[_FactsT], Iterable[Finding]]

_entered: Final[dict[str, PartitionCheck | ClusterCheck]] = {}

ENTERED: Final[Mapping[str, PartitionCheck | ClusterCheck]] = MappingProxyType(_entered)
"""The checks of the modules that were imported, by id; ``CHECKS`` of ``rules.checks`` has all of them in order."""


def partition_check(
    check_id: str,
    name: str,
    *,
    source: str,
    premises: Set[Premise],
    needs: Set[Evidence] = frozenset(),
    is_of_clients: bool = False,
) -> Callable[[_Find[PartitionFacts]], _Find[PartitionFacts]]:
    """Returns a decorator that makes a function the check of each partition; arguments as in ``Check``."""
    return _enter(
        PartitionCheck, check_id, name=name, source=source, premises=premises, needs=needs, is_of_clients=is_of_clients
    )


def cluster_check(
    check_id: str,
    name: str,
    *,
    source: str,
    premises: Set[Premise],
    needs: Set[Evidence] = frozenset(),
    is_of_clients: bool = False,
) -> Callable[[_Find[ClusterFacts]], _Find[ClusterFacts]]:
    """Returns a decorator that makes a function the check of the cluster; arguments as in ``Check``."""
    return _enter(
        ClusterCheck, check_id, name=name, source=source, premises=premises, needs=needs, is_of_clients=is_of_clients
    )


def _enter(
    kind: Callable[..., PartitionCheck | ClusterCheck],
    check_id: str,
    *,
    premises: Set[Premise],
    needs: Set[Evidence],
    **traits: Any,
) -> Callable[[_Find[_FactsT]], _Find[_FactsT]]:
    def enter(find: _Find[_FactsT]) -> _Find[_FactsT]:
        _entered[check_id] = kind(
            check_id=check_id, premises=frozenset(premises), needs=frozenset(needs), find=find, **traits
        )
        return find

    return enter
