"""D15 TruncationSafe: no follower truncates a record that the leader of an earlier epoch committed.

Within one epoch no event orders a leader's commit of a batch and a follower's truncation of it. Records that were
deleted on purpose are left out: a follower that does not know the new log start may truncate its copy.
"""

from collections.abc import Iterator, Set

import numpy as np

from laststand.emulator.core import events
from laststand.emulator.core.promises import PROMISES, Exemption
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.rules.check import Evidence, Finding, LostCommit, Premise, partition_check
from laststand.emulator.verification.rules.sentences import words
from laststand.emulator.verification.tables.events import EventRows
from laststand.emulator.verification.tables.matching import groups_of
from laststand.emulator.verification.tables.timeline import CollectedEvent

_Identity = tuple[str, int, int, int]
"""Topic id, base offset, leader epoch and CRC of a batch."""


@partition_check(
    "D15",
    "TruncationSafe",
    source="KIP-101; KIP-279",
    needs={Evidence.TOPIC_IDS},
    premises={Premise.HIGH_WATERMARK_MOVED, Premise.TRUNCATED},
)
def _find(facts: PartitionFacts) -> Iterator[Finding]:
    truncations = facts.events.of(events.LogTruncated)
    if not truncations:
        return
    cut_off = [list(_cut_off(facts, truncation)) for truncation in truncations]
    committed = _committed_epochs(facts, {_identity(batch) for batches in cut_off for batch in batches})
    skips_unclean = PROMISES["D15"].leaves_out(Exemption.UNCLEAN_ELECTIONS)
    skips_deleted = PROMISES["D15"].leaves_out(Exemption.DELETED_RECORDS)
    unclean = [
        (change.new.topic_id, change.new.leader_epoch)
        for change in facts.changes
        if skips_unclean and change.is_unclean
    ]
    for truncation, batches in zip(truncations, cut_off, strict=True):
        cut = truncation.event

        def exemption_of(epoch: int, cut: events.LogTruncated = cut) -> Exemption | None:
            is_exempt = any(
                topic_id == cut.topic_id and epoch < unclean_epoch <= cut.leader_epoch
                for topic_id, unclean_epoch in unclean
            )
            return Exemption.UNCLEAN_ELECTIONS if is_exempt else None

        found: dict[Exemption | None, set[int]] = {}
        for batch in batches:
            if skips_deleted and facts.is_deleted(
                batch.topic_id, batch.last_offset, crc=batch.crc, leader_epoch=batch.leader_epoch
            ):
                continue
            epochs = [epoch for epoch in committed.get(_identity(batch), ()) if epoch < cut.leader_epoch]
            exemptions = {exemption_of(epoch) for epoch in epochs}
            if exemptions:
                exemption = None if None in exemptions else Exemption.UNCLEAN_ELECTIONS
                found.setdefault(exemption, set()).add(batch.base_offset)
        for exemption, offsets in found.items():
            yield Finding(
                min(offsets),
                f"{facts}: broker {truncation.node} truncated its log from {cut.old_end_offset} to "
                f"{cut.new_end_offset} ({words(cut.reason)}) in epoch {cut.leader_epoch}, and with it {len(offsets)} "
                f"batches from offset {min(offsets)} on that had been committed",
                LostCommit(
                    cut.topic_id, facts.committed_at(cut.topic_id, min(offsets), since_epoch=0), cut.leader_epoch
                ),
                exempted_by=exemption,
            )


def _cut_off(facts: PartitionFacts, truncation: CollectedEvent[events.LogTruncated]) -> Iterator[events.BatchAppended]:
    cut = truncation.event
    log = _log_at(facts, truncation.node, cut.topic_id, (truncation.incarnation, truncation.sequence))
    is_cut_off = (log["base_offset"] >= cut.new_end_offset) & (log["last_offset"] < cut.old_end_offset)
    return (batch.event for batch in log.rows(is_cut_off))


def _committed_epochs(facts: PartitionFacts, batches: Set[_Identity]) -> dict[_Identity, set[int]]:
    """Returns by batch the epochs of the leaders that committed it while they had it.

    Args:
        facts: of the partition.
        batches: the batches to look for.
    """
    committed: dict[_Identity, set[int]] = {}
    offsets = np.array([base_offset for _, base_offset, _, _ in batches], np.int64)
    moves = facts.events.rows(events.HighWatermarkAdvanced)
    for places in groups_of(moves["topic_id"], moves["node"], moves["leader_epoch"]) if batches else ():
        [last] = moves.rows(places[-1:])
        log = _log_at(facts, last.node, last.event.topic_id, (last.incarnation, last.sequence))
        is_committed = log["last_offset"] < max(int(moves["new"][places].max()), 0)
        for there in log.rows(is_committed & np.isin(log["base_offset"], offsets)):
            if _identity(there.event) in batches:
                committed.setdefault(_identity(there.event), set()).add(last.event.leader_epoch)
    return committed


def _log_at(facts: PartitionFacts, node: int, topic_id: str, place: tuple[int, int]) -> EventRows[events.BatchAppended]:
    """Returns the batches that a log had before a line of its node's events.

    A batch is gone if a later append begins at or below its end, or if a process opened the log with an end before it:
    a killed process may not have recorded its last appends.
    """
    batches = facts.events.rows(events.BatchAppended)
    incarnations, sequence = batches["incarnation"], batches["sequence"]
    is_before = (incarnations < place[0]) | ((incarnations == place[0]) & (sequence < place[1]))
    is_there = batches.has("node", node) & batches.has("topic_id", topic_id) & is_before
    for opened in facts.events.of(events.LogOpened):
        found_at = (opened.incarnation, opened.sequence)
        if (opened.node, opened.event.topic_id) == (node, topic_id) and found_at < place:
            is_older = (incarnations < found_at[0]) | ((incarnations == found_at[0]) & (sequence < found_at[1]))
            is_there &= ~is_older | (batches["last_offset"] < opened.event.log_end_offset)
    log = batches.only(is_there)
    from_the_end = np.minimum.accumulate(log["base_offset"][::-1])
    next_lowest = np.append(from_the_end[::-1][1:], np.iinfo(np.int64).max)
    return log.only(log["last_offset"] < next_lowest[: len(log)])


def _identity(batch: events.BatchAppended) -> _Identity:
    return (batch.topic_id, batch.base_offset, batch.leader_epoch, batch.crc)
