"""Describes how acknowledged records were lost and how leadership moved.

Each fate (``fates``) becomes one ``Loss``: its numbers, its copies and a few sentences, each with the events that prove
it. Sentences about the controller are ordered by metadata offset, those about one node by its own sequence; nothing is
ordered by a clock.
"""

from collections.abc import Callable, Iterator
from typing import Final

from laststand.emulator.core import events
from laststand.emulator.verification.facts.cluster import ClusterFacts
from laststand.emulator.verification.facts.controller_terms import ControllerTerms, state_node
from laststand.emulator.verification.facts.losses import LossClass
from laststand.emulator.verification.facts.partition import ACKS_ALL, PartitionFacts
from laststand.emulator.verification.facts.quorum import NEW_DISK, Forgotten
from laststand.emulator.verification.rules.guarantee import judge_guarantee
from laststand.emulator.verification.tables.timeline import CollectedEvent, Timeline
from laststand.emulator.verification.verdict.fates import Fate, fates_of
from laststand.emulator.verification.verdict.loss_report import Loss, StoryKind, StoryLine, merged

LEADER_LINES_MAX: Final = 60
"""Committed states that a report lists per run; further ones are counted."""

_RANGES_TOLD_MAX: Final = 4


def losses_of_partition(facts: PartitionFacts, timeline: Timeline) -> tuple[Loss, ...]:
    """Returns the lost acks=all records of a partition, by offsets and fate."""
    fates = sorted(fates_of(facts), key=lambda fate: fate.offsets[0].first)
    return (*(_loss(fate, facts.cluster, timeline) for fate in fates), *_losses_without_offset(facts, timeline))


def _losses_without_offset(facts: PartitionFacts, timeline: Timeline) -> Iterator[Loss]:
    lost = [batch for batch in facts.unplaced.lost if batch.acks == ACKS_ALL]
    for topic_id in sorted({batch.topic_id or "" for batch in lost}):
        records = sum(batch.record_count for batch in lost if (batch.topic_id or "") == topic_id)
        judgement = judge_guarantee(
            timeline,
            facts.cluster.configuration,
            topic_id=topic_id,
            partition=facts.partition,
            acked_at=0,
            lacking_epoch=None,
        )
        head = (
            f"{'1 record' if records == 1 else f'{records:,} records'} of {facts} acknowledged with acks=all, without "
            f"an offset, {'is' if records == 1 else 'are'} {LossClass.GONE_FOR_CONSUMERS.value}."
        )
        guarantee = f"Guarantee {judgement.guarantee.value}: {judgement.reason}."
        yield Loss(
            topic=facts.topic,
            topic_id=topic_id,
            partition=facts.partition,
            records=records,
            leader_epoch=None,
            offsets=(),
            acked_by=None,
            isr=None,
            acked_at=None,
            loss_class=LossClass.GONE_FOR_CONSUMERS,
            holders=(),
            copies=(),
            first_lacking=None,
            settled_leader=None,
            settled_epoch=None,
            guarantee=judgement.guarantee,
            reason=judgement.reason,
            story=tuple(
                StoryLine(kind=kind, text=text, topic=facts.topic, partition=facts.partition)
                for kind, text in ((StoryKind.LOST, head), (StoryKind.GUARANTEE, guarantee))
            ),
        )


def _loss(fate: Fate, cluster: ClusterFacts, timeline: Timeline) -> Loss:
    judgement = judge_guarantee(
        timeline,
        cluster.configuration,
        topic_id=fate.topic_id,
        partition=fate.partition,
        acked_at=fate.acked_at if fate.acked_at is not None else _epoch_start(fate, timeline),
        lacking_epoch=fate.ended_in,
        unelected_at=None if fate.lacking is None else fate.lacking.unelected_at,
    )
    guarantee = f"Guarantee {judgement.guarantee.value}: {judgement.reason}."
    return Loss(
        topic=fate.topic,
        topic_id=fate.topic_id,
        partition=fate.partition,
        records=fate.records,
        leader_epoch=fate.leader_epoch,
        offsets=merged(fate.offsets),
        acked_by=fate.node,
        isr=fate.isr,
        acked_at=fate.acked_at,
        loss_class=fate.loss_class,
        holders=fate.holders,
        copies=fate.copies,
        first_lacking=fate.first_lacking,
        settled_leader=fate.leader,
        settled_epoch=fate.settled_epoch,
        guarantee=judgement.guarantee,
        reason=judgement.reason,
        story=(
            StoryLine(
                kind=StoryKind.LOST,
                text=" ".join(_head(fate)),
                node=fate.node,
                topic=fate.topic,
                partition=fate.partition,
                metadata_offset=fate.acked_at,
                events=() if fate.answer is None else (fate.answer,),
            ),
            *_what_happened(fate, cluster, timeline),
            StoryLine(kind=StoryKind.GUARANTEE, text=guarantee, topic=fate.topic, partition=fate.partition),
        ),
    )


def _epoch_start(fate: Fate, timeline: Timeline) -> int:
    """Returns the metadata offset (exclusive) at which the append epoch of a fate's batches began."""
    return min(
        (
            change.metadata_offset + 1
            for change in timeline.of(events.PartitionChanged)
            if change.topic_id == fate.topic_id
            and change.partition == fate.partition
            and change.leader_epoch == fate.leader_epoch
        ),
        default=0,
    )


def _head(fate: Fate) -> Iterator[str]:
    name = f"{fate.topic}-{fate.partition}"
    ranges = merged(fate.offsets)
    offsets = ", ".join(map(str, ranges))
    if len(ranges) > _RANGES_TOLD_MAX:
        offsets = f"{ranges[0].first} to {ranges[-1].last} in {len(ranges)} ranges"
    is_one = fate.records == 1
    they, them, were = ("it", "it", "was") if is_one else ("they", "them", "were")
    yield (
        f"{'1 record' if is_one else f'{fate.records:,} records'} of {name} acknowledged with acks=all, "
        f"offset{'' if is_one else 's'} {offsets}, {'is' if is_one else 'are'} {fate.loss_class.value}"
        f"{f' (on {_brokers(fate.holders)})' if fate.holders else ''}."
    )
    isr = "an unknown ISR" if fate.isr is None else f"ISR {list(fate.isr)}"
    epoch = "an unknown epoch" if fate.leader_epoch is None else f"epoch {fate.leader_epoch}"
    who = "an unknown broker" if fate.node is None else f"broker {fate.node}"
    clients = f"client{'' if len(fate.clients) == 1 else 's'} {', '.join(fate.clients)} of Kafka"
    recipients = f" to {clients}" if fate.clients else ""
    yield f"{who[0].upper()}{who[1:]} acknowledged {them}{recipients}, with {isr}; {they} {were} appended in {epoch}."
    if fate.held_by:
        yield f"{they.capitalize()} {were} in the logs of {_brokers(fate.held_by)}."


def _what_happened(fate: Fate, cluster: ClusterFacts, timeline: Timeline) -> Iterator[StoryLine]:
    terms = cluster.controllers

    def of_power_loss(fate: Fate, collected: CollectedEvent[events.Event]) -> _Statement | None:
        return _of_power_loss(fate, collected.event, are_appends_recorded=not cluster.is_seen_from_outside)

    def of_new_disk(fate: Fate, collected: CollectedEvent[events.Event]) -> _Statement | None:
        is_of_controller = isinstance(
            collected.event, events.FaultInjected
        ) and not cluster.quorum.controllers.isdisjoint(collected.event.nodes)
        if is_of_controller:
            return None  # it had no records of partitions
        return _of_new_disk(fate, collected.event, are_appends_recorded=not cluster.is_seen_from_outside)

    def of_registration(fate: Fate, collected: CollectedEvent[events.Event]) -> _Statement | None:
        return _of_registration(fate, collected.event)

    def of_election(fate: Fate, collected: CollectedEvent[events.Event]) -> _Statement | None:
        return _of_election(fate, collected.event, terms)

    def of_truncation(fate: Fate, collected: CollectedEvent[events.Event]) -> _Statement | None:
        return _of_truncation(
            fate, collected.node, collected.event, are_appends_recorded=not cluster.is_seen_from_outside
        )

    def placed(*tellers: _Teller) -> Iterator[StoryLine]:
        for teller in tellers:
            for collected in timeline.events:
                line = teller(fate, collected)
                if line is not None:
                    yield _placed(line, fate, cluster, collected)

    yield from placed(of_power_loss, of_new_disk, of_registration)
    for gone in cluster.quorum.forgotten:
        line = _of_forgetting(fate, gone, timeline)
        if line is not None:
            yield _placed(line, fate, cluster, gone.elected)
    yield from placed(of_election, _of_leading_again, of_truncation)


_Statement = tuple[StoryKind, int, int | None, str]
"""Kind, node, metadata offset and text of a line."""
_Teller = Callable[[Fate, CollectedEvent[events.Event]], _Statement | None]


def _placed(statement: _Statement, fate: Fate, cluster: ClusterFacts, event: CollectedEvent[events.Event]) -> StoryLine:
    kind, node, metadata_offset, text = statement
    return StoryLine(
        kind=kind,
        text=text,
        node=node,
        topic=fate.topic,
        partition=fate.partition,
        metadata_offset=metadata_offset,
        events=(cluster.place(event),),
    )


def _of_power_loss(fate: Fate, lost: events.Event, *, are_appends_recorded: bool) -> _Statement | None:
    if (
        not isinstance(lost, events.PowerLost)
        or (lost.topic_id, lost.partition) != (fate.topic_id, fate.partition)
        or lost.new_end_offset > fate.last_offset
        or lost.old_end_offset <= lost.new_end_offset
        or lost.old_end_offset <= fate.offsets[0].first
        or (are_appends_recorded and lost.lost_node not in fate.held_by)
    ):
        return None
    kept = "none of it had been flushed" if lost.new_end_offset == 0 else f"kept up to offset {lost.new_end_offset}"
    text = (
        f"Broker {lost.lost_node} lost power (keep: {lost.keep}): its log ended at {lost.old_end_offset} before and at "
        f"{lost.new_end_offset} after, {kept}."
    )
    return StoryKind.POWER_LOST, lost.lost_node, None, text


def _of_new_disk(fate: Fate, replaced: events.Event, *, are_appends_recorded: bool) -> _Statement | None:
    """Returns the sentence about a broker that may have had the records and whose disk was replaced."""
    if (
        not isinstance(replaced, events.FaultInjected)
        or replaced.fault != NEW_DISK
        or replaced.effect is None
        or len(replaced.nodes) != 1
        or (are_appends_recorded and replaced.nodes[0] not in fate.held_by)
        or (replaced.metadata_offset is not None and replaced.metadata_offset < (fate.acked_at or 0))
    ):
        return None
    [node] = replaced.nodes
    text = f"The disk of broker {node} was replaced by an empty one: none of its logs was left."
    return StoryKind.DISK_REPLACED, node, None, text


def _of_registration(fate: Fate, registered: events.Event) -> _Statement | None:
    if (
        not isinstance(registered, events.BrokerRegistered)
        or registered.stored_broker_epoch is None
        or registered.is_clean
        or fate.first_lacking is None
        or registered.broker_id != fate.first_lacking.node
    ):
        return None
    text = (
        f"Broker {registered.broker_id} registered again at metadata offset {registered.metadata_offset}, "
        "and the controller took its shutdown for unclean."
    )
    return StoryKind.REGISTERED, registered.broker_id, registered.metadata_offset, text


def _of_forgetting(fate: Fate, gone: Forgotten, timeline: Timeline) -> _Statement | None:
    """Returns the sentence about a controller that lacked the ISR without the first lacking leader."""
    if fate.first_lacking is None:
        return None
    excluding = [
        change
        for change in timeline.of(events.PartitionChanged)
        if (change.topic_id, change.partition) == (fate.topic_id, fate.partition)
        and gone.begin <= change.metadata_offset < gone.end
        and fate.first_lacking.node not in change.isr
    ]
    if not excluding:
        return None
    first = min(excluding, key=lambda change: change.metadata_offset)
    elected = gone.elected
    text = (
        f"Controller {elected.node} was elected in epoch {elected.event.quorum_epoch} of the quorum with a metadata "
        f"log that ended at {gone.begin}. It did not know of ISR {list(first.isr)}, which was committed at metadata "
        f"offset {first.metadata_offset} in epoch {gone.committed_in}, nor of anything else up to {gone.end}."
    )
    return StoryKind.METADATA_FORGOTTEN, elected.node, first.metadata_offset, text


def _of_election(fate: Fate, change: events.Event, terms: ControllerTerms) -> _Statement | None:
    if (
        not isinstance(change, events.PartitionChanged)
        or (change.topic_id, change.partition, change.leader_epoch) != (fate.topic_id, fate.partition, fate.ended_in)
        or change.election is events.Election.NONE
        or change.leader is None
        or (fate.lacking is not None and fate.lacking.unelected_at is not None)
    ):
        return None
    lacking = fate.first_lacking
    end = "" if lacking is None else f", with a log that ended at {lacking.log_end_offset}"
    writer = terms.writer(change.metadata_offset, state_node(change.topic, change.partition))
    who = "The controller" if writer is None else str(writer).capitalize()
    elr = f", ELR {list(change.elr)}" if writer is None else ""
    text = (
        f"{who} elected broker {change.leader} in epoch {change.leader_epoch} "
        f"({_election_words(change.election)}; cause: {_cause(change)}){end}; "
        f"ISR {list(change.isr)}{elr}."
    )
    return StoryKind.ELECTED, change.leader, change.metadata_offset, text


def _of_leading_again(fate: Fate, collected: CollectedEvent[events.Event]) -> _Statement | None:
    """Returns the sentence about the first leader without the records, if it was restarted after its election."""
    term, event = fate.lacking, collected.event
    if (
        term is None
        or term.unelected_at is None
        or not isinstance(event, events.BecameLeader)
        or (event.topic_id, event.partition, event.leader_epoch) != (fate.topic_id, fate.partition, term.leader_epoch)
        or (collected.node, collected.incarnation) != (term.node, term.incarnation)
    ):
        return None
    text = (
        f"Broker {term.node} was restarted and led again in epoch {term.leader_epoch}, to which its former process had "
        f"been elected, with a log that ended at {term.log_end_offset}."
    )
    return StoryKind.LED_AGAIN, term.node, None, text


def _of_truncation(fate: Fate, node: int, cut: events.Event, *, are_appends_recorded: bool) -> _Statement | None:
    if (
        not isinstance(cut, events.LogTruncated)
        or (cut.topic_id, cut.partition) != (fate.topic_id, fate.partition)
        or cut.new_end_offset > fate.last_offset
        or cut.old_end_offset <= fate.offsets[0].first
        or not (node in fate.held_by if are_appends_recorded else _may_have_held(fate, cut))
    ):
        return None
    text = (
        f"Broker {node} truncated its log from {cut.old_end_offset} to {cut.new_end_offset} "
        f"({cut.reason.replace('_', ' ')}), following leader {_or_unknown(cut.leader)} "
        f"in epoch {cut.leader_epoch}."
    )
    return StoryKind.TRUNCATED, node, None, text


def _may_have_held(fate: Fate, cut: events.LogTruncated) -> bool:
    """Returns whether a truncated log may have had the records: the leader's epoch is not before theirs."""
    return fate.leader_epoch is None or cut.leader_epoch >= fate.leader_epoch


def describe_leaders(timeline: Timeline, cluster: ClusterFacts) -> tuple[str, ...]:
    """Returns the partitions' committed states in the controller's order, in plain words."""
    terms = cluster.controllers
    changes = sorted(timeline.of(events.PartitionChanged), key=lambda c: c.metadata_offset)
    lines = [
        f"{c.topic}-{c.partition} epoch {c.leader_epoch}: leader {_or_none(c.leader)}, ISR {list(c.isr)}"
        f"{_written(c, terms)} ({_cause(c)}{_elected(c)})"
        for c in changes
    ]
    if len(lines) > LEADER_LINES_MAX:
        lines = [*lines[:LEADER_LINES_MAX], f"and {len(lines) - LEADER_LINES_MAX} more changes"]
    return tuple(lines)


def _written(change: events.PartitionChanged, terms: ControllerTerms) -> str:
    """Returns the words for a state's ELR, or for its writer in a cluster with ZooKeeper, which has no ELR."""
    writer = terms.writer(change.metadata_offset, state_node(change.topic, change.partition))
    return f", ELR {list(change.elr)}" if writer is None else f", written by {str(writer).removesuffix(',')}"


def _elected(change: events.PartitionChanged) -> str:
    return "" if change.election is events.Election.NONE else f"; {_election_words(change.election)}"


def _election_words(election: events.Election) -> str:
    match election:
        case events.Election.NONE:
            return "no election"
        case events.Election.ISR:
            return "elected as a member of the ISR"
        case events.Election.ELR:
            return "elected as an eligible leader replica"
        case events.Election.LAST_KNOWN_LEADER:
            return "elected as the last known leader"
        case events.Election.UNCLEAN:
            return "elected uncleanly"
        case events.Election.NO_CANDIDATE:
            return "no candidate left"


def _cause(change: events.PartitionChanged) -> str:
    who = "" if change.broker_id is None else f" {change.broker_id}"
    return f"{change.reason.replace('_', ' ')}{who}"


def _brokers(nodes: tuple[int, ...]) -> str:
    if len(nodes) == 1:
        return f"broker {nodes[0]}"
    return f"brokers {', '.join(map(str, nodes[:-1]))} and {nodes[-1]}"


def _or_none(node: int | None) -> str:
    return "none" if node is None else str(node)


def _or_unknown(value: int | None) -> str:
    return "unknown" if value is None else str(value)
