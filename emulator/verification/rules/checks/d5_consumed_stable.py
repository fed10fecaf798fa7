"""D5 ConsumedStable: a record that a consumer received stays in the log.

A later leader lacks a record if its log ended before it when it became leader; or if its final log lacks the record,
and the process that led stopped in order and has not truncated since. The settled leader must have it in any case.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from laststand.emulator.core import events
from laststand.emulator.core.promises import PROMISES, Exemption
from laststand.emulator.verification.facts.batches import LAST_INCARNATION, ConsumedBatch, LeaderTerm, TermPlace
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.facts.partition_evidence import UNKNOWN_NODE
from laststand.emulator.verification.rules.check import Finding, LostCommit, Premise, partition_check
from laststand.emulator.verification.rules.sentences import span
from laststand.emulator.verification.tables.columns import NONE, Mask, Table
from laststand.emulator.verification.tables.events import EventRows
from laststand.emulator.verification.tables.final_logs import FinalBatch
from laststand.emulator.verification.tables.integers import Ints
from laststand.emulator.verification.tables.matching import are_among
from laststand.emulator.verification.tables.timeline import CollectedEvent


@partition_check(
    "D5",
    "ConsumedStable",
    source="Kafka documentation, Replication: only committed messages are given out to the consumer",
    premises={Premise.CONSUMED},
    is_of_clients=True,
)
def _find(facts: PartitionFacts) -> Iterator[Finding]:
    received, after = facts.received, _after(facts)
    leaders_logs = list(_leaders_logs(facts))
    is_suspect = ~_are_stable(facts, after, leaders_logs)
    settled_batches = facts.settled_batches
    on_leader = {
        (batch.topic_id, batch.last_offset, batch.crc)
        for batch in settled_batches.rows(np.isin(settled_batches["last_offset"], received["last_offset"][is_suspect]))
    }
    suspects = (
        (batch, given_by)
        for given_by in np.unique(after.incarnations[is_suspect]).tolist()
        for batch in facts.consumed(is_suspect & (after.incarnations == given_by))
    )
    for batch, incarnation in suspects:
        topic_id = batch.topic_id
        if topic_id is None:
            continue
        if PROMISES["D5"].leaves_out(Exemption.DELETED_TOPICS) and topic_id in facts.cluster.deleted_topics:
            continue
        if PROMISES["D5"].leaves_out(Exemption.DELETED_RECORDS) and facts.is_deleted(
            topic_id, batch.last_offset, crc=batch.crc, leader_epoch=batch.leader_epoch
        ):
            continue
        settled = facts.settled.get(topic_id)
        lacking = other = None
        if batch.served_epoch is not None:
            place = TermPlace(max(batch.served_epoch, batch.leader_epoch), incarnation)
            lacking = facts.first_lacking(topic_id, after=place, last_offset=batch.last_offset)
            other = next((log for log in leaders_logs if log.lacks(batch, topic_id, after=place)), None)
        if lacking is not None:
            problem = str(lacking)
        elif other is not None:
            lacking = other.term
            problem = f"not in the log of broker {lacking.node}, which led in epoch {lacking.leader_epoch}"
        elif settled is not None and (topic_id, batch.last_offset, batch.crc) not in on_leader:
            of_whom = "" if settled.leader == UNKNOWN_NODE else f" of leader {settled.leader}"
            problem = f"not in the final log{of_whom}"
        else:
            continue
        yield Finding(
            batch.base_offset,
            f"{facts} {span(batch.base_offset, batch.last_offset)} of epoch {batch.leader_epoch}, given to "
            f"{batch.process}: {problem}",
            LostCommit(
                topic_id,
                facts.committed_at(topic_id, batch.last_offset, since_epoch=batch.leader_epoch),
                None if lacking is None else lacking.leader_epoch,
                None if lacking is None else lacking.unelected_at,
            ),
        )


class _LeadersLog(NamedTuple):
    """The final log of a process that has not truncated since it led: records that it lacks, the leader lacked, too."""

    topic_id: str
    term: LeaderTerm
    log_start_offset: int
    batches: Table[FinalBatch]

    def lacks(self, batch: ConsumedBatch, topic_id: str, *, after: TermPlace) -> bool:
        """Returns whether the replica led after a term, and does not have a batch."""
        if topic_id != self.topic_id or self.term.place <= after or batch.base_offset < self.log_start_offset:
            return False
        own = (self.batches["last_offset"] == batch.last_offset) & (self.batches["crc"] == batch.crc)
        return not own.any()


def _leaders_logs(facts: PartitionFacts) -> Iterator[_LeadersLog]:
    """Yields the final log of each node's last process that led, with its first term after its last truncation."""
    if facts.cluster.is_seen_from_outside:
        return  # not every truncation is recorded
    changed: dict[tuple[int, int, str], int] = {}
    relevant: list[CollectedEvent[events.PartitionEvent]] = [
        *facts.events.of(events.LogOpened),
        *facts.events.of(events.LogTruncated),
        *facts.events.of(events.LogDeleted),
    ]
    for each in relevant:
        process = (each.node, each.incarnation, each.event.topic_id)
        changed[process] = max(changed.get(process, 0), each.sequence)
    for log in facts.final_logs:
        incarnation = facts.cluster.last_incarnation.get(log.node)
        if log.problem is not None or log.topic_id is None or incarnation is None:
            continue
        key = (log.node, incarnation, log.topic_id)
        since = min(
            (
                each.event.leader_epoch
                for each in facts.events.of(events.BecameLeader)
                if (each.node, each.incarnation, each.event.topic_id) == key and each.sequence > changed.get(key, 0)
            ),
            default=None,
        )
        terms = (each for each in facts.terms.get(log.topic_id, ()) if each.incarnation == incarnation)
        term = next((each for each in terms if (each.node, each.leader_epoch) == (log.node, since)), None)
        if term is not None and (log.node, incarnation) not in facts.cluster.killed:
            final = facts.final_batches
            own = final.only(final.has("node", log.node) & final.has("topic_id", log.topic_id))
            yield _LeadersLog(log.topic_id, term, log.log_start_offset, own)


class _After(NamedTuple):
    """The topic and the leader's term in which each received batch was served; later leaders must have the batch."""

    topics: Ints
    epochs: Ints
    incarnations: Ints


def _after(facts: PartitionFacts) -> _After:
    """Returns the terms in which batches were served.

    If several processes led in one epoch, no event names the process that served a batch: one that had the batch when
    it became leader, or appended it. The last such process counts. If there is none, no process of the epoch counts as
    later.
    """
    received = facts.received
    unnamed = received.has("topic_id", None) | received.has("topic_id", "")
    topics = np.where(unnamed, facts.topic_number(facts.last_topic_id), facts.topics(received))
    served, last_offsets = received["served_epoch"], received["last_offset"]
    epochs = np.where(served == NONE, NONE, np.maximum(served, received["leader_epoch"]))
    incarnations = np.full(len(received), LAST_INCARNATION)
    for topic_id, terms in facts.terms.items():
        led_again = {term.leader_epoch for before, term in pairwise(terms) if before.leader_epoch == term.leader_epoch}
        for term in (each for each in terms if each.leader_epoch in led_again):
            is_of_term = (topics == facts.topic_number(topic_id)) & (epochs == term.leader_epoch)
            own = _appended_in(facts, topic_id, term)
            had = last_offsets < term.log_end_offset
            had |= are_among([last_offsets, received["crc"]], [own["last_offset"], own["crc"]])
            incarnations[is_of_term & had] = term.incarnation
    return _After(topics, epochs, incarnations)


def _appended_in(facts: PartitionFacts, topic_id: str, term: LeaderTerm) -> EventRows[events.BatchAppended]:
    appended = facts.events.rows(events.BatchAppended)
    is_own = appended.has("topic_id", topic_id) & appended.has("role", events.AppendRole.LEADER)
    is_own &= appended.has("node", term.node) & appended.has("incarnation", term.incarnation)
    return appended.only(is_own & appended.has("leader_epoch", term.leader_epoch))


def _are_stable(facts: PartitionFacts, after: _After, leaders_logs: Sequence[_LeadersLog]) -> Mask:
    """Returns, for each received batch, whether the settled leader and every leader since have it; nearly all do."""
    received, settled = facts.received, facts.settled_batches
    last_offsets = received["last_offset"]
    on_leader = are_among(
        [after.topics, last_offsets, received["crc"]], [facts.topics(settled), settled["last_offset"], settled["crc"]]
    )
    for log in leaders_logs:
        is_of_log = (after.topics == facts.topic_number(log.topic_id)) & (after.epochs != NONE)
        is_of_log &= received["base_offset"] >= log.log_start_offset
        is_later = after.epochs < log.term.leader_epoch
        is_later |= (after.epochs == log.term.leader_epoch) & (after.incarnations < log.term.incarnation)
        own = are_among([last_offsets, received["crc"]], [log.batches["last_offset"], log.batches["crc"]])
        on_leader &= own | ~is_of_log | ~is_later
    return on_leader & ~facts.are_lacking(
        topics=after.topics,
        after_epochs=after.epochs,
        after_incarnations=after.incarnations,
        last_offsets=last_offsets,
    )
