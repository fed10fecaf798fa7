"""Finds acknowledged batches that are not where they must be."""

from collections.abc import Iterator

import numpy as np

from laststand.emulator.core import events
from laststand.emulator.core.promises import PROMISES, Exemption
from laststand.emulator.verification.facts.batches import AckedBatch, LeaderTerm, LostBatch, TermPlace
from laststand.emulator.verification.facts.losses import LossClass, classify_settled, classify_unsettled
from laststand.emulator.verification.facts.partition_evidence import PartitionEvidence
from laststand.emulator.verification.tables.columns import Mask, Table
from laststand.emulator.verification.tables.matching import are_among

_Copy = tuple[str | None, int, int | None, int]
"""Topic id, base offset, CRC and last offset of a batch."""


def lost_batches(facts: PartitionEvidence, acked: Table[AckedBatch]) -> Iterator[LostBatch]:
    """Yields acknowledged batches (any acks) that are not where they must be, including those that D1 exempts.

    If a replica's directory is missing and there is no settled leader, no batch counts as lost: the evidence is
    incomplete.
    """
    if facts.cluster.is_seen_by_clients_alone:
        yield from _lost_to_consumers(facts, acked)
        return
    final = facts.final_batches
    is_read = _are_read(facts, acked)
    is_suspect = ~(_are_kept(facts, acked) & is_read)
    suspects = list(acked.rows(is_suspect))
    copies: dict[_Copy, set[int]] = {(a.topic_id, a.base_offset, a.crc, a.last_offset): set() for a in suspects}
    offsets = np.array([each.base_offset for each in suspects], np.int64)
    for batch in final.rows(np.isin(final["base_offset"], offsets)):
        held_by = copies.get((batch.topic_id, batch.base_offset, batch.crc, batch.last_offset))
        if held_by is not None:
            held_by.add(batch.node)
    for suspect, is_missed in zip(suspects, (~is_read[is_suspect]).tolist(), strict=True):
        state = facts.states.get(suspect.topic_id or "")
        if state is None:
            continue
        appended_in = suspect.acked_epoch if suspect.leader_epoch is None else suspect.leader_epoch
        if _leave_out(Exemption.DELETED_RECORDS) and facts.is_deleted(
            state.topic_id, suspect.last_offset, crc=suspect.crc, leader_epoch=appended_in
        ):
            continue
        holders = copies[suspect.topic_id, suspect.base_offset, suspect.crc, suspect.last_offset]
        lacking = _first_lacking(facts, suspect)
        settled = facts.settled.get(state.topic_id)
        if settled is not None:
            loss_class = classify_settled(
                state=state,
                leader=settled.leader,
                holders=holders,
                was_lacking=lacking is not None,
                is_missed=is_missed,
            )
        elif facts.missing_replicas(state):
            loss_class = None
        else:
            loss_class = classify_unsettled(state=state, holders=holders, was_lacking=lacking is not None)
        if loss_class is not None:
            yield LostBatch(
                batch=suspect,
                loss_class=loss_class,
                holders=tuple(sorted(holders)),
                lacking=lacking,
                settled=settled,
                exempted_by=_exemption_of(state, lacking) if holders else None,
            )


def _lost_to_consumers(facts: PartitionEvidence, acked: Table[AckedBatch]) -> Iterator[LostBatch]:
    """Yields acknowledged batches that the final consumer passed without receiving them.

    Batches below the log start are left out: they may have been deleted.
    """
    if not facts.is_known_what_was_read:
        return
    topics = facts.topics(acked)
    is_come_past = np.zeros(len(acked), np.bool_)
    for log in facts.final_logs:
        is_of_log = (topics == facts.topic_number(log.topic_id)) & (acked["last_offset"] >= log.log_start_offset)
        is_come_past |= is_of_log if facts.read_up_to is None else is_of_log & (acked["last_offset"] < facts.read_up_to)
    for lost in acked.rows(is_come_past & ~_are_read(facts, acked)):
        yield LostBatch(
            batch=lost,
            loss_class=LossClass.GONE_FOR_CONSUMERS,
            holders=(),
            lacking=None,
            settled=facts.settled.get(lost.topic_id or ""),
        )


def _exemption_of(state: events.PartitionChanged, lacking: LeaderTerm | None) -> Exemption | None:
    """Returns the exemption of a batch that a replica still holds: no leader lacked it, and no replica may lead now."""
    has_candidate = bool(state.isr or state.elr)
    is_exempt = not has_candidate and lacking is None and PROMISES["D1"].leaves_out(Exemption.NO_CANDIDATE)
    return Exemption.NO_CANDIDATE if is_exempt else None


def _leave_out(exemption: Exemption) -> bool:
    """Returns whether D1 and D4, whose checks report lost batches, both have an exemption."""
    return all(PROMISES[check_id].leaves_out(exemption) for check_id in ("D1", "D4"))


def _are_kept(facts: PartitionEvidence, acked: Table[AckedBatch]) -> Mask:
    """Returns, for each batch, whether the settled leader and all leaders since its acknowledgement had it."""
    settled, topics, last_offsets = facts.settled_batches, facts.topics(acked), acked["last_offset"]
    is_held = are_among(
        [topics, acked["base_offset"], last_offsets, acked["crc"]],
        [facts.topics(settled), settled["base_offset"], settled["last_offset"], settled["crc"]],
    )
    lacks = facts.are_lacking(
        topics=topics,
        after_epochs=acked["acked_epoch"],
        after_incarnations=acked["acked_incarnation"],
        last_offsets=last_offsets,
    )
    return is_held & ~lacks


def _are_read(facts: PartitionEvidence, acked: Table[AckedBatch]) -> Mask:
    """Returns, for each batch, whether the final consumer received it, or cannot have been expected to."""
    if not facts.is_known_what_was_read:
        return np.ones(len(acked), np.bool_)
    read = facts.received.only(facts.received.has("phase", "final"))
    # By the last offset: if a batch was deleted in part, a consumer receives the rest.
    is_read = are_among([acked["last_offset"], acked["crc"]], [read["last_offset"], read["crc"]])
    return is_read if facts.read_up_to is None else is_read | (acked["last_offset"] >= facts.read_up_to)


def _first_lacking(facts: PartitionEvidence, acked: AckedBatch) -> LeaderTerm | None:
    if acked.acked_epoch is None:
        return None
    after = TermPlace(acked.acked_epoch, acked.acked_incarnation)
    return facts.first_lacking(acked.topic_id, after=after, last_offset=acked.last_offset)
