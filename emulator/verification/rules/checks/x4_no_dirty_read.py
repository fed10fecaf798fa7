"""X4 NoDirtyRead: a reader of committed records is neither given nor told as stable what is of an open transaction."""

from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate

from laststand.emulator.core.history import CommittedReadOperation, GroupReadOperation
from laststand.emulator.verification.facts.cluster import ClusterFacts
from laststand.emulator.verification.facts.transactions import End, SentTransaction, TransactionFacts
from laststand.emulator.verification.rules.check import Evidence, Finding, Premise, cluster_check
from laststand.emulator.verification.tables.client_history import SentBatch


@cluster_check(
    "X4",
    "NoDirtyRead",
    source="KIP-98, Transactional Guarantees; G1b of Adya, Liskov and O'Neil 2000",
    needs={Evidence.HISTORY},
    premises={Premise.TRANSACTION, Premise.READ_COMMITTED},
)
def _find(cluster: ClusterFacts) -> Iterator[Finding]:
    facts = cluster.transactions
    written: dict[int, tuple[SentTransaction, SentBatch]] = {}
    for transaction in facts.sent():
        if transaction.sends:
            last = max(transaction.sends, key=lambda send: send.ended_ns)
            written.update({each.crc: (transaction, last) for send in transaction.sends for each in send.crcs})
    reads: list[CommittedReadOperation | GroupReadOperation]
    reads = [*facts.reads, *facts.group_reads, *cluster.memberships.reads]
    for read in reads:
        for batch in read.batches:
            if batch.crc not in written:
                continue
            transaction, last = written[batch.crc]
            if read.time_ns < last.ended_ns:
                where = f"{read.topic}-{read.partition} offset {batch.base_offset}"
                yield Finding(
                    batch.base_offset,
                    f"{read.process} was given {where}, of {transaction.operation.operation_id}, before "
                    f"{last.operation_id} of that transaction had an outcome",
                )
    if not cluster.is_seen_from_outside:  # Apache Kafka reads the two bounds one after the other
        yield from _told_too_far(facts)


def _told_too_far(facts: TransactionFacts) -> Iterator[Finding]:
    """Yields each batch below a last stable offset that a reader got, if its abort was not committed by then."""
    told: dict[tuple[str, int, str | None], list[tuple[int, int]]] = {}
    for read in facts.reads:
        if read.high_watermark is not None:
            stable = read.high_watermark if read.last_stable_offset is None else read.last_stable_offset
            told.setdefault((read.topic, read.partition, read.topic_id), []).append((stable, read.high_watermark))
    bounds = {place: _Bounds(pairs) for place, pairs in told.items()}
    for transaction in facts.sent():
        for send in transaction.sends:
            of_topic = bounds.get((send.topic, send.partition, send.topic_id))
            for copy in facts.copies_of(send) or () if of_topic is not None else ():
                ended = copy.end_offset if copy.end is End.ABORT else None
                if of_topic is not None and ended is not None and of_topic.passed(copy.base_offset, before=ended):
                    where, name = f"{send.topic}-{send.partition}", transaction.operation.operation_id
                    yield Finding(
                        copy.base_offset,
                        f"a reader was told that {where} offset {copy.base_offset}, of {name}, is stable, and it was "
                        f"aborted at {ended} afterwards",
                    )


class _Bounds:
    """The last stable offsets of a partition that readers got, each with the high watermark of that moment."""

    def __init__(self, pairs: list[tuple[int, int]]) -> None:
        pairs.sort()
        self._stable = [stable for stable, _ in pairs]
        self._least = list(accumulate((end for _, end in reversed(pairs)), min))[::-1]

    def passed(self, offset: int, *, before: int) -> bool:
        """Returns whether one was above an offset while the high watermark was not above another."""
        place = bisect_right(self._stable, offset)
        return place < len(self._stable) and self._least[place] <= before
