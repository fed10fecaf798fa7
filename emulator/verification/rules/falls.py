"""Finds numbers that fall along a log though, for one producer id, they must not."""

from collections.abc import Iterator

import numpy as np

from laststand.emulator.verification.tables.columns import Table
from laststand.emulator.verification.tables.final_logs import FinalBatch
from laststand.emulator.verification.tables.matching import groups_of


def falls(batches: Table[FinalBatch], column: str) -> Iterator[tuple[FinalBatch, int]]:
    """Yields each batch whose number is below that of the producer id's previous batch, with that previous number."""
    batches.sort("base_offset")
    numbers = batches[column]
    befores = np.full(len(batches), -1)
    for places in groups_of(batches["topic_id"], batches["producer_id"]):
        befores[places[1:]] = numbers[places[:-1]]
    is_wrong = numbers < befores
    yield from zip(batches.rows(is_wrong), befores[is_wrong].tolist(), strict=True)
