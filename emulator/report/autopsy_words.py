"""An autopsy in words: the lines of its text, which its page shows, too."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from emulator.autopsy.comparison import PartedBy, Parting, ProducerShare, Surplus
from emulator.autopsy.findings import AutopsyReport, CandidateReport, CommittedState, Loss, PartitionAutopsy
from emulator.autopsy.replica_reader import DamageKind
from emulator.core.types import LeaderRecoveryState
from emulator.report.words import brokers, dashed, members, number, plural

COLUMNS: Final = (
    "BROKER",
    "LOG START",
    "LOG END",
    "LAST EPOCH",
    "HIGH WATERMARK",
    "FLUSHED TO",
    "CLOSED IN ORDER",
    "LOST AGAINST LONGEST",
    "LOST COMMITTED",
    "ELECTION",
)
"""Titles of a table of candidates."""

_PRODUCERS_MAX: Final = 5
_BYTES_PER_UNIT: Final = 1000
_HAVE: Final = ("has", "have")
_PARTED_BY: Final = {
    PartedBy.NOTHING: "",
    PartedBy.END: "where one ends",
    PartedBy.EPOCH: "by their leader epochs",
    PartedBy.BATCH: "by their batches, though their leader epochs agree",
}
_DAMAGE: Final = {
    DamageKind.TORN: "the last batch is cut off",
    DamageKind.HEADER: "there is no batch",
    DamageKind.CRC: "a batch is damaged",
    DamageKind.ORDER: "offsets go back",
}


def row_of(candidate: CandidateReport, partition: PartitionAutopsy) -> tuple[str | int | None, ...]:
    """Returns the cells of a candidate, as ``COLUMNS`` names them; the longest log has a star."""
    star = "*" if candidate.broker_id == partition.longest else ""
    return (
        f"{candidate.broker_id}{star}",
        candidate.log_start_offset,
        candidate.log_end_offset,
        candidate.last_leader_epoch,
        candidate.high_watermark,
        candidate.recovery_point,
        "yes" if candidate.is_clean else "no",
        candidate.lost_against_longest,
        candidate.lost_committed,
        candidate.eligibility.reason,
    )


def state_words(committed: CommittedState | None) -> str:
    """Returns what the metadata log says of a partition."""
    if committed is None:
        return "the metadata log does not say who may lead"
    leader = "no leader" if committed.leader is None else f"leader {committed.leader}"
    words = [
        f"{leader}, leader epoch {committed.leader_epoch}",
        f"assigned to {members(committed.replicas)}",
        f"ISR {members(committed.isr)}",
        f"ELR {members(committed.elr)}",
    ]
    if committed.last_known_leader is not None:
        words.append(f"last known leader {committed.last_known_leader}")
    if committed.min_insync_replicas is not None:
        words.append(f"min ISR {committed.min_insync_replicas}")
    if committed.unclean_leader_election_enable == "true":
        words.append("unclean elections enabled")
    if committed.leader_recovery_state is LeaderRecoveryState.RECOVERING:
        words.append("elected uncleanly and not recovered")
    return "; ".join(words)


def details_of(partition: PartitionAutopsy) -> Iterator[str]:
    """Yields a sentence per damaged log, and one per loss that an election would mean."""
    for candidate in partition.candidates:
        damage = candidate.damage
        if damage is not None:
            yield (
                f"broker {candidate.broker_id}: {_DAMAGE[damage.kind]} at byte {number(damage.position)} of "
                f"{damage.file} ({damage.reason}): the log ends at {number(candidate.log_end_offset)}, and a recovery "
                f"drops {size(damage.bytes_after)}"
            )
    for candidate in partition.candidates:
        for holders, loss in _grouped(candidate.losses):
            yield f"electing {candidate.broker_id} loses {_loss_words(loss, holders)}"
    if partition.is_compacted and any(candidate.losses for candidate in partition.candidates):
        yield "the logs are compacted: they were compared by their leader epochs, not batch by batch"


def _grouped(losses: Sequence[Loss]) -> Iterator[tuple[list[int], Loss]]:
    """Yields losses, those that are the same of several brokers once."""
    found: dict[tuple[Parting, Surplus, Surplus], list[Loss]] = {}
    for loss in losses:
        found.setdefault((loss.parting, loss.lost, loss.committed), []).append(loss)
    for same in found.values():
        yield [loss.held_by for loss in same], same[0]


def _loss_words(loss: Loss, holders: Sequence[int]) -> str:
    lost, committed = loss.lost, loss.committed.records
    words = plural(lost.records, "record")
    if lost.markers:
        words += f" and {plural(lost.markers, 'transaction marker')}"
    share = "all" if committed == lost.records else number(committed) if committed else "none"
    parted = f"the logs part at {number(loss.parting.offset)}, {_PARTED_BY[loss.parting.parted_by]}"
    return (
        f"{words} that {brokers(holders)} {_HAVE[len(holders) > 1]}, {share} committed: {surplus_words(lost)}; {parted}"
    )


def surplus_words(lost: Surplus) -> str:
    """Returns at which offsets records are, how large, of when and of whom."""
    words: list[str] = []
    if lost.first_offset is not None and lost.last_offset is not None:
        is_one = lost.first_offset == lost.last_offset
        words.append(
            f"offset {number(lost.last_offset)}" if is_one else f"offsets {dashed(lost.first_offset, lost.last_offset)}"
        )
    words.append(size(lost.bytes))
    if lost.first_timestamp_ms is not None and lost.last_timestamp_ms is not None:
        first, last = moment(lost.first_timestamp_ms), moment(lost.last_timestamp_ms)
        words.append(first if first == last else f"{first} to {last}")
    return ", ".join([*words, *_producers(lost.producers)])


def _producers(shares: Sequence[ProducerShare]) -> Iterator[str]:
    for share in shares[:_PRODUCERS_MAX]:
        who = "producers without id" if share.producer_id is None else f"producer {share.producer_id}"
        yield f"{number(share.records)} of {who}"
    if len(shares) > _PRODUCERS_MAX:
        yield f"the others of {plural(len(shares) - _PRODUCERS_MAX, 'more producer')}"


def size(count: int) -> str:
    """Returns a number of bytes in three digits or so."""
    value = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if value < _BYTES_PER_UNIT:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= _BYTES_PER_UNIT
    return f"{value:.1f} TB"


def moment(timestamp_ms: int) -> str:
    """Returns a record's timestamp as a calendar time in UTC; as a number where it is none."""
    try:
        found = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return f"timestamp {timestamp_ms}"
    return f"{found:%Y-%m-%dT%H:%M:%S}.{found.microsecond // 1000:03}Z"


def summary(report: AutopsyReport) -> str:
    """Returns how many partitions there are, and how many of them differ."""
    apart = sum(not partition.is_alike for partition in report.partitions)
    directories = "1 log directory" if len(report.directories) == 1 else f"{len(report.directories)} log directories"
    if not apart:
        return f"{plural(len(report.partitions), 'partition')} in {directories}: all replicas hold the same"
    return f"{plural(len(report.partitions), 'partition')} in {directories}: the replicas of {number(apart)} differ"


def metadata_words(report: AutopsyReport) -> str:
    """Returns where the committed state comes from."""
    if report.metadata is None:
        return "no metadata log: whether a replica may lead is unknown"
    problem = "" if report.metadata.problem is None else f"; it is damaged: {report.metadata.problem}"
    return f"committed state: {report.metadata.path}, up to offset {number(report.metadata.end_offset)}{problem}"
