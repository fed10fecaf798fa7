"""Selects the records of a fetch that a read_committed consumer gets (Kafka's ``CompletedFetch``)."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

from laststand.emulator.core.batch import AbortedTransaction, BatchDescriptor, TransactionResult
from laststand.emulator.core.types import ProducerId


def committed_batches(
    batches: Iterable[BatchDescriptor], aborted: Sequence[AbortedTransaction]
) -> Iterator[BatchDescriptor]:
    """Yields the batches that are neither control batches nor aborted; ``aborted`` comes from the fetch, unordered."""
    coming = deque(sorted(aborted, key=lambda each: each.first_offset))
    skipped: set[ProducerId] = set()
    for batch in batches:
        while coming and coming[0].first_offset <= batch.last_offset:
            skipped.add(coming.popleft().producer_id)
        if batch.marker is not None and batch.producer_id is not None:
            if batch.marker.result is TransactionResult.ABORT:
                skipped.discard(batch.producer_id)
        elif not batch.is_control and not (batch.is_transactional and batch.producer_id in skipped):
            yield batch
