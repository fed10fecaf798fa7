"""X9 PositionStays: a group continues where it committed last; findings name repeated and skipped records."""

from collections import deque
from collections.abc import Iterator, Sequence

from laststand.emulator.core.promises import PROMISES, Exemption
from laststand.emulator.verification.facts.cluster import ClusterFacts
from laststand.emulator.verification.facts.group_positions import GroupSource, Positions, first_reads, group_source
from laststand.emulator.verification.rules.check import Evidence, Finding, Premise, cluster_check


@cluster_check(
    "X9",
    "PositionStays",
    source="KIP-98, OffsetCommit; KIP-211; KAFKA-20716",
    needs={Evidence.HISTORY},
    premises={Premise.POSITION_FOLLOWED},
)
def _find(cluster: ClusterFacts) -> Iterator[Finding]:
    skips_deleted_topics = PROMISES["X9"].leaves_out(Exemption.DELETED_TOPICS)
    skips_deleted = PROMISES["X9"].leaves_out(Exemption.DELETED_RECORDS)
    positions = cluster.committed_positions
    for read in positions.reads():
        operation = read.operation
        if not read.is_elsewhere or read.expected is None or (skips_deleted_topics and read.is_in_another_topic):
            continue
        if skips_deleted and read.expected < operation.position <= cluster.transactions.deleted_below(operation):
            continue
        where = f"{operation.topic}-{operation.partition}"
        known = "no position" if operation.committed is None else f"position {operation.committed}"
        again = [offset for offset in read.offsets() if offset < read.expected]
        left_out = cluster.transactions.acked_offsets(operation, read.expected, operation.position)
        yield Finding(
            operation.position,
            f"{operation.group_id} had committed {read.expected} in {where}, and {operation.operation_id} goes on at "
            f"{operation.position} ({known}): it repeats {_counted(again)} and leaves out {_counted(left_out)}",
        )

    yield from _written_behind(cluster, positions, skips_deleted=skips_deleted)
    yield from _of_members(cluster, positions)


def _of_members(cluster: ClusterFacts, positions: Positions) -> Iterator[Finding]:
    """Yields each first read of a member below the position that its group had committed before the assignment."""
    for first in first_reads(cluster.memberships, positions):
        read, expected = first.operation, min(first.last)
        if read.position >= expected:
            continue
        known = "no position" if read.committed is None else f"position {read.committed}"
        offsets = (each for batch in read.batches for each in range(batch.base_offset, batch.last_offset + 1))
        again = [offset for offset in offsets if offset < expected]
        yield Finding(
            read.position,
            f"{read.group_id} had committed {expected} in {read.topic}-{read.partition}, and {read.process} goes on at "
            f"{read.position} ({known}) in generation {read.generation_id}: it repeats {_counted(again)} at first",
        )


def _written_behind(cluster: ClusterFacts, positions: Positions, *, skips_deleted: bool) -> Iterator[Finding]:
    """Yields each read above acknowledged records that the group never received: the log was cut and written again."""
    facts = cluster.transactions
    of_members = deque(sorted(cluster.memberships.reads, key=lambda each: each.index))
    given: dict[GroupSource, set[int]] = {}
    first: dict[GroupSource, int] = {}
    reported: set[tuple[str, str]] = set()
    for read in positions.reads():
        operation = read.operation
        while of_members and of_members[0].index < operation.index:
            member = of_members.popleft()
            first.setdefault(group_source(member), member.position)
            given.setdefault(group_source(member), set()).update(batch.crc for batch in member.batches)
        key = group_source(operation)
        begins = first.setdefault(key, operation.position)
        crcs = given.setdefault(key, set())
        start = facts.deleted_below(operation) if skips_deleted else 0
        left_out: list[int] = []
        for send, offsets in facts.acked(operation):
            is_behind = send.completed < operation.index and begins <= offsets.start < operation.position
            is_given = any(each.crc in crcs for each in send.crcs)
            if is_behind and not is_given and (operation.group_id, send.operation_id) not in reported:
                reported.add((operation.group_id, send.operation_id))
                left_out += [offset for offset in offsets if start <= offset < operation.position]
        crcs.update(batch.crc for batch in operation.batches)
        if left_out and not read.is_elsewhere:
            yield Finding(
                operation.position,
                f"{operation.group_id} goes on at {operation.position} in {operation.topic}-{operation.partition}, in "
                f"other records than those that it had read: it leaves out {_counted(sorted(left_out))}",
            )


def _counted(offsets: Sequence[int]) -> str:
    if not offsets:
        return "no record"
    spans: list[list[int]] = []
    for offset in offsets:
        if spans and offset == spans[-1][1] + 1:
            spans[-1][1] = offset
        else:
            spans.append([offset, offset])
    named = ", ".join(f"{first}" if first == last else f"{first}-{last}" for first, last in spans)
    return f"{len(offsets)} records (offsets {named})" if len(offsets) > 1 else f"1 record (offset {named})"
