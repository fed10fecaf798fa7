"""An autopsy in words: the lines of its text, which its page shows, too."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from laststand.emulator.autopsy.broker_logs import Deciding
from laststand.emulator.autopsy.comparison import PartedBy, Parting, ProducerShare, Surplus
from laststand.emulator.autopsy.findings import (
    AutopsyReport,
    BrokerReturn,
    CandidateReport,
    Loss,
    MetadataSource,
    PartitionAutopsy,
    SeveralLogs,
)
from laststand.emulator.autopsy.replica_reader import DamageKind
from laststand.emulator.core.types import LeaderRecoveryState
from laststand.emulator.report.numbers import number, plural
from laststand.emulator.report.words import brokers, dashed, listed, members

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
_LEADERLESS_MIN: Final = 2
"""Below that a summary says no more than the partition."""
_HAVE: Final = ("has", "have")
_DECIDING: Final = {
    Deciding.TOPIC_ID: "the metadata log names its topic id",
    Deciding.DIRECTORY_ID: "the metadata log assigns the replica to its directory",
}
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


RETURN_COLUMNS: Final = (
    "BROKER",
    "REPLICAS",
    "ELIGIBLE",
    "COMPLETE",
    "ELIGIBLE AND COMPLETE",
    "ADDED",
    "COMPLETE OTHERWISE",
)
"""Titles of a table of brokers that could be brought back."""


def row_of(candidate: CandidateReport, partition: PartitionAutopsy) -> tuple[str | int | None, ...]:
    """Returns the cells of a candidate, for ``COLUMNS``; the longest log has a star."""
    star = "*" if (candidate.broker_id, candidate.folder) == (partition.longest, partition.longest_folder) else ""
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


def return_row_of(broker: BrokerReturn) -> tuple[int, ...]:
    """Returns the cells of a broker, for ``RETURN_COLUMNS``."""
    return (
        broker.broker_id,
        broker.replicas,
        broker.eligible,
        broker.complete,
        broker.eligible_and_complete,
        broker.added,
        broker.complete_otherwise,
    )


def log_name(broker_id: int, folder: str, partition: PartitionAutopsy) -> str:
    """Returns the broker of a log, and its folder if the broker has several logs of the partition."""
    logs = [candidate for candidate in partition.candidates if candidate.broker_id == broker_id]
    return str(broker_id) if len(logs) == 1 else f"{broker_id} in {folder}"


def state_words(partition: PartitionAutopsy) -> str:
    """Returns the metadata log's state of a partition, in words."""
    committed = partition.committed
    if partition.is_of_other_topic:
        return f"logs of topic id {partition.topic_id}, which the metadata log does not have under this name"
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
    """Yields a sentence per damaged log, and one per loss that an election would cause."""
    names = {
        candidate.folder: log_name(candidate.broker_id, candidate.folder, partition)
        for candidate in partition.candidates
    }
    if partition.unread:
        yield f"the log of {brokers(partition.unread)} could not be read, and is not compared"
    if partition.absent:
        yield f"{brokers(partition.absent)} {_HAVE[len(partition.absent) > 1]} a replica, too, whose log is not here"
    for candidate in partition.candidates:
        damage = candidate.damage
        if damage is not None:
            yield (
                f"broker {names[candidate.folder]}: {_DAMAGE[damage.kind]} at byte {number(damage.position)} of "
                f"{damage.file} ({damage.reason}): the log ends at {number(candidate.log_end_offset)}, and a recovery "
                f"drops {size(damage.bytes_after)}"
            )
    for candidate in partition.candidates:
        for holders, loss in _grouped(candidate.losses):
            held_by = [name for folder, name in names.items() if folder in holders]
            yield f"electing {names[candidate.folder]} loses {_loss_words(loss, held_by)}"
    if partition.is_compacted and any(candidate.losses for candidate in partition.candidates):
        yield "the logs are compacted: they were compared by their leader epochs, not batch by batch"


def _grouped(losses: Sequence[Loss]) -> Iterator[tuple[list[str], Loss]]:
    """Yields losses, each with the folders of the logs that hold it; equal ones of several logs once."""
    found: dict[tuple[Parting, Surplus, Surplus], list[Loss]] = {}
    for loss in losses:
        found.setdefault((loss.parting, loss.lost, loss.committed), []).append(loss)
    for same in found.values():
        yield [loss.held_in for loss in same], same[0]


def _loss_words(loss: Loss, holders: Sequence[str]) -> str:
    lost, committed = loss.lost, loss.committed.records
    words = plural(lost.records, "record")
    if lost.markers:
        words += f" and {plural(lost.markers, 'transaction marker')}"
    share = "all" if committed == lost.records else number(committed) if committed else "none"
    parted = f"the logs part at {number(loss.parting.offset)}, {_PARTED_BY[loss.parting.parted_by]}"
    held = f"{_brokers(holders)} {_HAVE[len(holders) > 1]}"
    return f"{words} that {held}, {share} committed: {surplus_words(lost)}; {parted}"


def _brokers(names: Sequence[str]) -> str:
    """Returns brokers as words; a name may say in which folder."""
    return f"broker{'s' if len(names) > 1 else ''} {listed(names)}"


def surplus_words(lost: Surplus) -> str:
    """Returns the offsets, sizes, times and producers of records, in words."""
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
    """Returns a number of bytes with about three digits."""
    value = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if value < _BYTES_PER_UNIT:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= _BYTES_PER_UNIT
    return f"{value:.1f} TB"


def moment(timestamp_ms: int) -> str:
    """Returns a record's timestamp as a calendar time in UTC; as a number if it is out of range."""
    try:
        found = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return f"timestamp {timestamp_ms}"
    return f"{found:%Y-%m-%dT%H:%M:%S}.{found.microsecond // 1000:03}Z"


def summary(report: AutopsyReport) -> str:
    """Returns the number of partitions, how many of them differ, and what was not read, in words."""
    directories = "1 log directory" if len(report.directories) == 1 else f"{len(report.directories)} log directories"
    words = [f"{plural(len(report.partitions), 'partition')} in {directories}: {_comparison_words(report)}"]
    if report.unread:
        words.append(f"{plural(len(report.unread), 'log')} could not be read")
    words += _several_words(report.several_logs)
    return "; ".join(words)


def _comparison_words(report: AutopsyReport) -> str:
    apart = sum(partition.differs for partition in report.partitions)
    if apart:
        return f"the replicas of {number(apart)} differ"
    if not report.partitions:
        return "nothing to compare"
    if report.unread:
        return "the replicas that could be read hold the same"
    absent = sum(bool(partition.absent) for partition in report.partitions)
    if absent:
        return f"the replicas that are here hold the same; others of {plural(absent, 'partition')} are not here"
    return "all replicas hold the same"


def _several_words(found: Sequence[SeveralLogs]) -> Iterator[str]:
    unclear = [each for each in found if each.deciding is Deciding.NOTHING]
    for each in unclear[:1]:
        others = f", and so it is with {plural(len(unclear) - 1, 'more log')}" if len(unclear) > 1 else ""
        yield f"{_several_logs(each)}, nothing says which of them counts, and all are shown{others}"
    clear = [each for each in found if each.deciding is not Deciding.NOTHING]
    for each in clear[:1]:
        others = f", and so it is with {plural(len(clear) - 1, 'more log')}" if len(clear) > 1 else ""
        yield f"{_several_logs(each)}, of which {each.folders[0]} counts: {_DECIDING[each.deciding]}{others}"


def _several_logs(each: SeveralLogs) -> str:
    count = len(each.folders) + len(each.other_folders)
    return f"broker {each.broker_id} has {count} logs of {each.topic}-{each.partition}"


def several_logs_words(report: AutopsyReport) -> Iterator[str]:
    """Yields a sentence per broker and partition of which the broker has several logs."""
    for each in report.several_logs:
        if each.deciding is Deciding.NOTHING:
            yield f"{_several_logs(each)}, and nothing says which of them counts: {listed(each.folders)}"
        else:
            yield (
                f"{_several_logs(each)}: {each.folders[0]} counts ({_DECIDING[each.deciding]}), "
                f"{listed(each.other_folders)} {'does' if len(each.other_folders) == 1 else 'do'} not"
            )


def return_words(report: AutopsyReport) -> str | None:
    """Returns which broker to bring back first; ``None`` unless several partitions are without a leader."""
    leaderless = sum(partition.is_leaderless for partition in report.partitions)
    if leaderless < _LEADERLESS_MIN:
        return None
    words = f"{plural(leaderless, 'partition')} without a leader"
    useful = [broker for broker in report.brokers_to_return if broker.added]
    left = leaderless - sum(each.added for each in useful)
    if useful:
        order = ", then ".join(f"broker {each.broker_id} ({number(each.added)})" for each in useful)
        words += f": bring back {order}, which may lead them cleanly and lacks no record"
    if left:
        words += "; the others get no" if useful else ": none gets a"
        words += " leader that is both eligible and complete"
        best = max(report.brokers_to_return, key=lambda each: (each.complete_otherwise, -each.broker_id), default=None)
        if best is not None and best.complete_otherwise:
            words += (
                f", but broker {best.broker_id} lacks no record of {number(best.complete_otherwise)} of them: "
                "there an unclean election of it loses nothing that another log here has"
            )
    return words


def metadata_words(report: AutopsyReport) -> str:
    """Returns the source of the committed state, in words."""
    if report.metadata is None:
        return "no metadata log: whether a replica may lead is unknown"
    problem = "" if report.metadata.problem is None else f"; it is damaged: {report.metadata.problem}"
    return (
        f"committed state: {report.metadata.path}, up to offset {number(report.metadata.end_offset)}{problem}"
        f"{_certainty(report.metadata)}"
    )


def _certainty(metadata: MetadataSource) -> str:
    """Returns what voters' logs prove about the end of the newest copy, which may not be committed."""
    if len(metadata.voters) < 2:
        return ""
    voters = ", ".join(map(str, metadata.voters))
    if metadata.committed_end_offset is None:
        return f"; the logs of the voters {voters} do not prove that any of it was committed"
    return f"; the logs of the voters {voters} prove all below {number(metadata.committed_end_offset)} committed"
