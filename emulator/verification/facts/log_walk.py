"""Finds the log end offset before each appended batch, by the broker's own events."""

from collections.abc import Iterator

import numpy as np

from laststand.emulator.core import events
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.tables.columns import NONE
from laststand.emulator.verification.tables.events import place_of
from laststand.emulator.verification.tables.timeline import CollectedEvent

_Step = events.LogOpened | events.LogTruncated | events.LogDeleted | events.RecoveryFinished
"""Events other than appends that move the end of a log."""


def appended_elsewhere(facts: PartitionFacts) -> Iterator[tuple[CollectedEvent[events.BatchAppended], int]]:
    """Yields each batch whose base offset was not the log end offset before it, with that log end offset."""
    batches = facts.events.rows(events.BatchAppended)
    steps: list[CollectedEvent[_Step]] = [
        *facts.events.of(events.LogOpened),
        *facts.events.of(events.LogTruncated),
        *facts.events.of(events.LogDeleted),
        *facts.events.of(events.RecoveryFinished),
    ]
    others = np.array([place_of(step) for step in steps], np.int64).reshape(-1, 3)
    nodes = np.concatenate([batches["node"], others[:, 0]])
    incarnations = np.concatenate([batches["incarnation"], others[:, 1]])
    sequences = np.concatenate([batches["sequence"], others[:, 2]])
    ends = np.concatenate([batches["last_offset"] + 1, np.array([_end_after(s.event) for s in steps], np.int64)])
    order = np.lexsort((sequences, incarnations, nodes))
    is_of_process = (nodes[order][1:] == nodes[order][:-1]) & (incarnations[order][1:] == incarnations[order][:-1])
    before = np.full(len(order), NONE)
    before[order[1:]] = np.where(is_of_process, ends[order][:-1], NONE)
    own = before[: len(batches)]
    is_elsewhere = (own != NONE) & (own != batches["base_offset"])
    return zip(batches.rows(is_elsewhere), own[is_elsewhere].tolist(), strict=True)


def _end_after(event: _Step) -> int:
    match event:
        case events.LogTruncated():
            return event.new_end_offset
        case events.LogOpened() | events.RecoveryFinished():
            return event.log_end_offset
        case events.LogDeleted():
            return NONE
