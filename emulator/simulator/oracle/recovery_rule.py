"""M20: the replica that an unclean recovery elects by KIP-966, computed independently of the core.

"The one with the highest leader epoch plus the longest log end offset will be the new leader", among the replicas that
answered. Strategy Balanced elects nobody before all members of the last known ELR and the last known leader answered.
Until the timeout, the controller waits for the answers of all replicas; with Aggressive, and where Balanced does not
wait, only for replicas that could lead.

The answers are those that were delivered to the controller; the controller's event must agree with them. The strategy
is the configured one, or one that an administrator requested: each request accounts for one election.
"""

from collections.abc import Iterator, Mapping, Set
from types import MappingProxyType
from typing import Final, NamedTuple

from laststand.emulator.core import admin_messages, events
from laststand.emulator.core.types import (
    BrokerEpoch,
    BrokerId,
    LeaderEpoch,
    MetadataOffset,
    RecoveryStrategy,
    TopicPartition,
)
from laststand.emulator.simulator.oracle.replica_answers import Heard, ReplicaAnswers

_ASKED_FOR: Final = MappingProxyType(
    {
        admin_messages.RequestedElection.UNCLEAN: RecoveryStrategy.AGGRESSIVE,
        admin_messages.RequestedElection.LONGEST_LOG_AGGRESSIVE: RecoveryStrategy.AGGRESSIVE,
        admin_messages.RequestedElection.LONGEST_LOG_BALANCED: RecoveryStrategy.BALANCED,
    }
)
"""The strategy that a request stands for, where it may lead to an unclean recovery."""


class Electorate(NamedTuple):
    """The brokers when an election was held: the epochs of all, and those that could lead."""

    registered: Mapping[BrokerId, BrokerEpoch]
    active: Set[BrokerId]


class Patience(NamedTuple):
    """The controller's patience: its time limit by its own clock, and whether Balanced waits for all replicas."""

    timeout_ms: int
    waits: bool


class Problem(NamedTuple):
    """A problem, and whether the run directory shows it, which does not contain the delivered messages."""

    sentence: str
    leaves_evidence: bool


class RecoveryRule:
    """The rule, for one run.

    Attributes:
        answers: the answers that were delivered to the controller.
    """

    def __init__(self) -> None:
        self.answers = ReplicaAnswers()
        self._asked: dict[TopicPartition, list[RecoveryStrategy]] = {}
        self._judged: set[MetadataOffset] = set()
        self._started_ms: dict[tuple[TopicPartition, LeaderEpoch], int] = {}

    def asked(self, name: TopicPartition, election: admin_messages.RequestedElection) -> None:
        """An administrator asks for a leader."""
        strategy = _ASKED_FOR.get(election)
        if strategy is not None:
            self._asked.setdefault(name, []).append(strategy)

    def started(self, event: events.UncleanRecoveryStarted, *, now_ms: int) -> None:
        """The controller began a recovery, at a time of its clock, or continued it with another strategy."""
        self._started_ms.setdefault((TopicPartition(event.topic, event.partition), event.leader_epoch), now_ms)

    def dropped(self, event: events.UncleanRecoveryDropped) -> None:
        """The controller ended a recovery without choosing."""
        self.answers.dropped(event)
        self._started_ms.pop((TopicPartition(event.topic, event.partition), event.leader_epoch), None)

    def restarted(self) -> None:
        """Another controller begins every recovery again."""
        self._started_ms.clear()

    def ended(self) -> None:
        """The controller's process ended, and with it its recoveries and their start times."""
        self.answers.ended()
        self._started_ms.clear()

    def problems(
        self,
        event: events.UncleanLeaderElected,
        before: events.PartitionChanged | None,
        electorate: Electorate,
        *,
        configured: RecoveryStrategy,
        patience: Patience,
        now_ms: int,
    ) -> Iterator[Problem]:
        """Yields the problems of an election by the longest log.

        Args:
            event: the election.
            before: the partition's state before the election; ``None`` if it is not known.
            electorate: the brokers at the election.
            configured: the topic's strategy at the election.
            patience: how long the controller waits for missing answers.
            now_ms: when it was reported, by the controller's clock.
        """
        if event.method is not events.UncleanMethod.LONGEST_LOG or event.metadata_offset in self._judged:
            return  # the latter is reported again by the controller's next process
        self._judged.add(event.metadata_offset)
        for sentence in self._decision_problems(event, before, configured):
            yield Problem(sentence, leaves_evidence=True)
        if before is None:
            return
        started_ms = self._started_ms.pop((TopicPartition(event.topic, event.partition), before.leader_epoch), None)
        if started_ms is not None and now_ms - started_ms < patience.timeout_ms:
            for sentence in _hasty(event, before, electorate, waits=patience.waits):
                yield Problem(f"{sentence} within {patience.timeout_ms} ms", leaves_evidence=False)
        heard = self.answers.heard(event, leader_epoch=before.leader_epoch, registered=electorate.registered)
        for sentence in _answer_problems(event, heard, could_lead=electorate.active & set(before.replicas)):
            yield Problem(sentence, leaves_evidence=False)

    def _decision_problems(
        self, event: events.UncleanLeaderElected, before: events.PartitionChanged | None, configured: RecoveryStrategy
    ) -> Iterator[str]:
        yield from _rank_problems(event)
        strategy = event.strategy
        if not self._is_wanted(event, configured):
            yield f"strategy {event.strategy} is neither configured nor asked for"
            strategy = configured
        if before is not None and strategy is RecoveryStrategy.BALANCED:
            unheard = sorted(_remembered(before) - {answer.broker_id for answer in event.answers})
            if unheard:
                yield f"{unheard} had not answered"

    def _is_wanted(self, event: events.UncleanLeaderElected, configured: RecoveryStrategy) -> bool:
        if event.strategy is configured:
            return configured is not RecoveryStrategy.NONE
        asked = self._asked.get(TopicPartition(event.topic, event.partition), [])
        if event.strategy not in asked:
            return False
        asked.remove(event.strategy)
        return True


def _hasty(
    event: events.UncleanLeaderElected, before: events.PartitionChanged, electorate: Electorate, *, waits: bool
) -> Iterator[str]:
    is_patient = waits and event.strategy is RecoveryStrategy.BALANCED
    awaited = set(before.replicas) if is_patient else electorate.active & set(before.replicas)
    missing = sorted(awaited - {answer.broker_id for answer in event.answers})
    if missing:
        yield f"{missing} were not waited for"


def _rank_problems(event: events.UncleanLeaderElected) -> Iterator[str]:
    ranks = {answer.broker_id: _rank(answer) for answer in event.answers}
    if event.leader not in ranks:
        yield f"{event.leader} did not say what it has"
    elif ranks[event.leader] < max(ranks.values()):
        yield f"{event.leader} has not the longest log of {ranks}"


def _answer_problems(event: events.UncleanLeaderElected, heard: Heard, *, could_lead: Set[BrokerId]) -> Iterator[str]:
    named = {answer.broker_id: answer for answer in event.answers}
    untrue = sorted(broker_id for broker_id, answer in named.items() if heard.answers.get(broker_id) != answer)
    if untrue:
        yield f"{untrue} did not answer as the controller says, but {dict(heard.answers)}"
    left_out = sorted((heard.must_count & could_lead) - named.keys())
    if left_out:
        yield f"the answers of {left_out} were left out"


def _remembered(before: events.PartitionChanged) -> set[BrokerId]:
    last = () if before.last_known_leader is None else (before.last_known_leader,)
    return {*before.last_known_elr, *last} & set(before.replicas)


def _rank(answer: events.ReplicaAnswer) -> tuple[int, int]:
    written = answer.last_written_leader_epoch
    return (-1 if written is None else written, answer.log_end_offset)
