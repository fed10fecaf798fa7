"""Lost batches of a partition, grouped by fate.

Batches share one fate if the same broker acknowledged them in the same epoch with the same ISR, the same brokers
appended and still hold them, the same leader was the first to lack them, and their class of loss is the same.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from laststand.emulator.core import events
from laststand.emulator.core.history import ForeignProcess
from laststand.emulator.verification.facts.batches import LeaderTerm, LostBatch, TermPlace
from laststand.emulator.verification.facts.copies import Copies
from laststand.emulator.verification.facts.losses import CopyFate, LossClass
from laststand.emulator.verification.facts.partition import ACKS_ALL, PartitionFacts
from laststand.emulator.verification.tables.timeline import CollectedEvent, EventPlace
from laststand.emulator.verification.verdict.loss_report import FirstLacking, LostCopy, OffsetRange, merged


class _Identity(NamedTuple):
    """The attributes that batches of one fate share; ``isr`` as the acknowledging leader knew it."""

    topic_id: str
    node: int | None
    leader_epoch: int | None
    isr: tuple[int, ...] | None
    held_by: tuple[int, ...]
    holders: tuple[int, ...]
    lacking: tuple[TermPlace, int] | None
    leader: int | None
    settled_epoch: int | None
    loss_class: LossClass


class Fate(msgspec.Struct, frozen=True, kw_only=True):
    """Batches that share one fate.

    Attributes:
        lacking: the term of the first leader without them.
        node: the broker that acknowledged them.
        answer: the line of the answer that acknowledged the first of them.
        acked_at: metadata offset that the acknowledging leader had applied (exclusive); the highest of all batches.
        held_by: brokers that appended them; ``holders``: brokers whose final logs have them.
        clients: ids of the Kafka clients that sent them; Laststand's own clients are left out.
        leader: the settled leader.
        offsets: a range for each batch, in order; ``last_offset`` is the last offset of all.

    """

    topic: str
    topic_id: str
    partition: int
    node: int | None
    leader_epoch: int | None
    isr: tuple[int, ...] | None
    answer: EventPlace | None
    acked_at: int | None
    held_by: tuple[int, ...]
    holders: tuple[int, ...]
    copies: tuple[LostCopy, ...]
    first_lacking: FirstLacking | None
    lacking: LeaderTerm | None
    leader: int | None
    settled_epoch: int | None
    loss_class: LossClass
    records: int
    offsets: tuple[OffsetRange, ...]
    last_offset: int
    clients: tuple[str, ...]

    @property
    def ended_in(self) -> int | None:
        """The epoch of the first leader without the batches; if there was none, of the settled leader."""
        return self.settled_epoch if self.first_lacking is None else self.first_lacking.leader_epoch


class _Member(NamedTuple):
    lost: LostBatch
    answer: CollectedEvent[events.ProduceAnswered] | None
    acked_at: int | None


def fates_of(facts: PartitionFacts) -> Iterator[Fate]:
    """Yields the fates of a partition's lost acks=all records."""
    lost = [each for each in facts.lost if each.batch.acks == ACKS_ALL]
    copies = Copies(facts, lost)
    groups: dict[_Identity, list[_Member]] = {}
    for each in lost:
        answer = _acknowledgement(facts, each, copies)
        acked_at = (
            None if answer is None else facts.cluster.applied_before(answer.node, answer.incarnation, answer.sequence)
        )
        groups.setdefault(_identity(each, answer, copies), []).append(_Member(each, answer, acked_at))
    for identity, members in groups.items():
        yield _fate(facts, identity, members, copies)


def _identity(each: LostBatch, answer: CollectedEvent[events.ProduceAnswered] | None, copies: Copies) -> _Identity:
    batch, lacking, settled = each.batch, each.lacking, each.settled
    return _Identity(
        topic_id=batch.topic_id or "",
        node=batch.node,
        leader_epoch=batch.leader_epoch,
        isr=None if answer is None else answer.event.committed_isr,
        held_by=copies.holding(each).nodes,
        holders=each.holders,
        lacking=None if lacking is None else (lacking.place, lacking.node),
        leader=None if settled is None else settled.leader,
        settled_epoch=None if settled is None else settled.leader_epoch,
        loss_class=each.loss_class,
    )


def _fate(facts: PartitionFacts, identity: _Identity, members: list[_Member], copies: Copies) -> Fate:
    members.sort(key=lambda member: (member.lost.batch.base_offset, member.lost.batch.last_offset))
    answer = members[0].answer
    return Fate(
        topic=facts.topic,
        topic_id=identity.topic_id,
        partition=facts.partition,
        node=identity.node,
        leader_epoch=identity.leader_epoch,
        isr=identity.isr,
        answer=None if answer is None else facts.cluster.place(answer),
        acked_at=max((member.acked_at for member in members if member.acked_at is not None), default=None),
        held_by=identity.held_by,
        holders=identity.holders,
        copies=_copies(facts, [member.lost for member in members], copies),
        first_lacking=_first_lacking([member.lost for member in members]),
        lacking=members[0].lost.lacking,
        leader=identity.leader,
        settled_epoch=identity.settled_epoch,
        loss_class=identity.loss_class,
        records=sum(member.lost.batch.record_count for member in members),
        offsets=tuple(_range(member.lost) for member in members),
        last_offset=max(member.lost.batch.last_offset for member in members),
        clients=tuple(sorted(_clients(members))),
    )


def _clients(members: Iterable[_Member]) -> set[str]:
    processes = {ForeignProcess.parse(member.lost.batch.process) for member in members}
    return {process.client_id for process in processes if process is not None}


def _range(lost: LostBatch) -> OffsetRange:
    return OffsetRange(first=lost.batch.base_offset, last=lost.batch.last_offset)


def _first_lacking(lost: list[LostBatch]) -> FirstLacking | None:
    terms = [each.lacking for each in lost if each.lacking is not None]
    if not terms:
        return None
    end = max(term.log_end_offset for term in terms)
    return FirstLacking(
        node=terms[0].node,
        leader_epoch=terms[0].leader_epoch,
        log_end_offset=end,
        led_again=terms[0].unelected_at is not None,
    )


def _copies(facts: PartitionFacts, lost: list[LostBatch], copies: Copies) -> tuple[LostCopy, ...]:
    found: dict[tuple[int, CopyFate, EventPlace | None], list[LostBatch]] = {}
    for each in lost:
        for copy in copies.fates(each):
            event = None if copy.event is None else facts.cluster.place(copy.event)
            found.setdefault((copy.node, copy.became, event), []).append(each)
    ordered = sorted(found.items(), key=lambda entry: (entry[0][0], entry[1][0].batch.base_offset))
    return tuple(
        LostCopy(
            node=node,
            became=became,
            records=sum(each.batch.record_count for each in batches),
            offsets=None if len(batches) == len(lost) else merged(map(_range, batches)),
            event=event,
        )
        for (node, became, event), batches in ordered
    )


def _acknowledgement(
    facts: PartitionFacts, lost: LostBatch, copies: Copies
) -> CollectedEvent[events.ProduceAnswered] | None:
    """The answer that acknowledged a batch.

    After a truncation a leader may answer a second time for one offset. The answer to a batch is the one with the
    send's cause id, or else the first one after the batch was appended.
    """
    batch, appended = lost.batch, copies.holding(lost).first
    if batch.node is None or batch.node not in appended:
        return None
    answers = [
        answer
        for answer in facts.answers.get((batch.node, batch.base_offset), ())
        if answer.event.acks == ACKS_ALL
        and answer.event.topic_id == batch.topic_id
        and (answer.incarnation, answer.sequence) > appended[batch.node]
    ]
    return min(
        answers,
        key=lambda answer: (answer.event.cause_id != batch.operation_id, answer.incarnation, answer.sequence),
        default=None,
    )
