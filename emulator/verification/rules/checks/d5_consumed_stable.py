"""D5 ConsumedStable: what a consumer was given stays in the log."""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from laststand.emulator.core.events import AppendRole, BatchAppended
from laststand.emulator.core.promises import PROMISES, Exemption
from laststand.emulator.verification.facts.batches import LAST_INCARNATION, LeaderTerm, TermPlace
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.rules.check import Finding, LostCommit, PartitionCheck, Premise
from laststand.emulator.verification.rules.sentences import span
from laststand.emulator.verification.tables.columns import NONE, Mask
from laststand.emulator.verification.tables.events import EventRows
from laststand.emulator.verification.tables.integers import Ints
from laststand.emulator.verification.tables.matching import are_among


def _find(facts: PartitionFacts) -> Iterator[Finding]:
    received, after = facts.received, _after(facts)
    is_suspect = ~_are_stable(facts, after)
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
        lacking = (
            None
            if batch.served_epoch is None
            else facts.first_lacking(
                topic_id,
                after=TermPlace(max(batch.served_epoch, batch.leader_epoch), incarnation),
                last_offset=batch.last_offset,
            )
        )
        if lacking is not None:
            problem = str(lacking)
        elif settled is not None and (topic_id, batch.last_offset, batch.crc) not in on_leader:
            problem = f"not in the final log of leader {settled.leader}"
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


class _After(NamedTuple):
    """By received batch, the term of the leader that it was given in; later leaders must have it."""

    topics: Ints
    epochs: Ints
    incarnations: Ints


def _after(facts: PartitionFacts) -> _After:
    """Returns the terms in which batches were given.

    No event says which process of an epoch's leader gave a batch: it is one that began with it or appended it. Of
    several the last one counts, and where it is none of those that are known, none counts as later.
    """
    received = facts.received
    unnamed = received.has("topic_id", None) | received.has("topic_id", "")
    topics = np.where(unnamed, facts.topic_number(max(facts.states, default=None)), facts.topics(received))
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


def _appended_in(facts: PartitionFacts, topic_id: str, term: LeaderTerm) -> EventRows[BatchAppended]:
    appended = facts.events.rows(BatchAppended)
    is_own = appended.has("topic_id", topic_id) & appended.has("role", AppendRole.LEADER)
    is_own &= appended.has("node", term.node) & appended.has("incarnation", term.incarnation)
    return appended.only(is_own & appended.has("leader_epoch", term.leader_epoch))


def _are_stable(facts: PartitionFacts, after: _After) -> Mask:
    """Which batches are on their settled leader and were on every leader since: nearly all."""
    received, settled = facts.received, facts.settled_batches
    last_offsets = received["last_offset"]
    on_leader = are_among(
        [after.topics, last_offsets, received["crc"]], [facts.topics(settled), settled["last_offset"], settled["crc"]]
    )
    return on_leader & ~facts.are_lacking(
        topics=after.topics,
        after_epochs=after.epochs,
        after_incarnations=after.incarnations,
        last_offsets=last_offsets,
    )


CHECK = PartitionCheck(
    check_id="D5",
    name="ConsumedStable",
    source="Kafka documentation, Replication: only committed messages are given out to the consumer",
    premises=frozenset({Premise.CONSUMED}),
    find=_find,
)
