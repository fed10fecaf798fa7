"""Numbers of a producer id that may not fall along a log."""

from collections.abc import Iterator

import numpy as np

from laststand.emulator.verification.tables.columns import Table
from laststand.emulator.verification.tables.final_logs import FinalBatch
from laststand.emulator.verification.tables.matching import groups_of


def falls(batches: Table[FinalBatch], column: str) -> Iterator[tuple[FinalBatch, int]]:
    """Yields each batch whose number is below that of the same producer id's batch before it, and that one's."""
    batches.sort("base_offset")
    numbers = batches[column]
    befores = np.full(len(batches), -1)
    for places in groups_of(batches["topic_id"], batches["producer_id"]):
        befores[places[1:]] = numbers[places[:-1]]
    is_wrong = numbers < befores
    yield from zip(batches.rows(is_wrong), befores[is_wrong].tolist(), strict=True)
