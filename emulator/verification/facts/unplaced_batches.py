"""Acknowledged batches without an offset, which are recognized by their CRC.

Such a batch is lost if it was acknowledged before the last final read began, and no poll since then returned it. For
batches that were acknowledged later, it is unknown whether they are lost.
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
        lost: batches acknowledged before the last final read began, and not received since then.
        unasked: batches of unknown fate, because no final read began after their acknowledgement.
    """

    lost: tuple[SentBatch, ...]
    unasked: tuple[SentBatch, ...]


def unplaced_batches(facts: PartitionEvidence) -> UnplacedBatches:
    """Returns the batches without an offset, in a run without a plan whose only evidence is from clients."""
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
