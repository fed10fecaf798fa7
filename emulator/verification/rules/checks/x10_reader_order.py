"""X10 CommittedReaderOrder: a read_committed consumer skips no record, and continues where it was."""

from collections.abc import Iterator

from laststand.emulator.verification.facts.cluster import ClusterFacts
from laststand.emulator.verification.facts.transactions import End
from laststand.emulator.verification.rules.check import Evidence, Finding, Premise, cluster_check
from laststand.emulator.verification.tables.rows import PartitionName


@cluster_check(
    "X10",
    "CommittedReaderOrder",
    source="KIP-98, Consumer: read_committed; Jepsen's Kafka workload, poll-skip",
    needs={Evidence.HISTORY, Evidence.FINAL_LOGS},
    premises={Premise.TRANSACTION, Premise.READ_COMMITTED},
)
def _find(cluster: ClusterFacts) -> Iterator[Finding]:
    facts = cluster.transactions
    reached: dict[tuple[str, PartitionName, str | None], int] = {}
    given: dict[PartitionName, set[int]] = {}
    for read in facts.reads:
        name = (read.topic, read.partition)
        reader = (read.process, name, read.topic_id)
        expected = reached.get(reader)
        if expected is not None and not read.seek and read.position != expected:
            yield Finding(
                read.position,
                f"{read.process} went from {expected} to {read.position} of {read.topic}-{read.partition}",
            )
        reached[reader] = read.next_position
        given.setdefault(name, set()).update(batch.crc for batch in read.batches)
    ends = {name: min(at for (_, of, _), at in reached.items() if of == name) for _, name, _ in reached}
    for transaction in facts.sent():
        for send in transaction.sends:
            name = (send.topic, send.partition)
            is_passed = send.base_offset is not None and send.base_offset < ends.get(name, 0)
            copies = facts.copies_of(send) or ()
            if is_passed and send.crc not in given[name] and any(copy.end is End.COMMIT for copy in copies):
                yield Finding(
                    send.base_offset or 0,
                    f"{send.topic}-{send.partition} offset {send.base_offset} is committed, and no reader that came "
                    "past it was given it",
                )
