"""Logs in memory: batches written as a few numbers each."""

from typing import NamedTuple

import numpy as np

from laststand.emulator.autopsy.comparison import BATCH_COLUMNS, Log, epochs_of
from laststand.emulator.core.types import Offset


class Batch(NamedTuple):
    """A batch: how many offsets it has, its leader epoch, and a number that stands for its content."""

    length: int
    leader_epoch: int
    content: int
    producer_id: int = -1
    is_control: bool = False


def log_of(batches: list[Batch], *, start: int = 0) -> Log:
    """Returns the log that holds batches one after the other, each of 100 bytes a record, at 1000 ms an offset."""
    columns = np.zeros(len(batches), BATCH_COLUMNS)
    offset = start
    for place, batch in enumerate(batches):
        columns[place] = (
            *(offset, offset + batch.length - 1, batch.leader_epoch, batch.content, 100 * batch.length),
            *(batch.length, 1000 * offset, 1000 * (offset + batch.length - 1), batch.producer_id, batch.is_control),
        )
        offset += batch.length
    return Log(
        log_start_offset=Offset(start),
        log_end_offset=Offset(offset),
        epochs=epochs_of(columns, (), end=Offset(offset)),
        batches=columns,
    )
