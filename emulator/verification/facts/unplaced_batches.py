"""Acknowledged batches of which no producer was told an offset: their own bytes have to tell them.

Such a batch is lost if none of the reads that tell how the log ends has it, and it was acknowledged before the last of
these began. If it was acknowledged later, nobody knows.
"""

from typing import NamedTuple

from laststand.emulator.core.history import OperationType
from laststand.emulator.core.types import Acks
from laststand.emulator.verification.facts.partition_evidence import PartitionEvidence
from laststand.emulator.verification.tables.client_history import SentBatch
from laststand.emulator.verification.tables.columns import NONE


class UnplacedBatches(NamedTuple):
    """Batches without an offset.

    Attributes:
        lost: that the last reads lack.
        unasked: that nobody read who began after they were acknowledged.
    """

    lost: tuple[SentBatch, ...]
    unasked: tuple[SentBatch, ...]


def unplaced_batches(facts: PartitionEvidence) -> UnplacedBatches:
    """Returns those of a history that others wrote."""
    if not facts.cluster.is_seen_by_clients_alone or facts.cluster.has_plan:
        return UnplacedBatches((), ())
    sent = facts.sent
    is_unplaced = sent.has("type", OperationType.OK) & (sent["base_offset"] == NONE) & (sent["acks"] != Acks.NONE)
    unplaced = tuple(sent.rows(is_unplaced))
    if not facts.is_known_what_was_read:
        return UnplacedBatches((), unplaced)
    begun = max((read.begun for read in facts.final_reads if read.begun is not None), default=None)
    if begun is None:
        return UnplacedBatches((), ())
    given = {crc for poll in facts.polls if poll.index >= begun for crc in poll.crcs}
    absent = [batch for batch in unplaced if batch.crc not in given]
    return UnplacedBatches(
        lost=tuple(batch for batch in absent if batch.completed < begun),
        unasked=tuple(batch for batch in absent if batch.completed >= begun),
    )
