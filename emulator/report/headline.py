"""Writes the headline of a report: the number of lost records, the reason in one sentence, and the guarantee.

Every number is the verdict's.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from laststand.emulator.report.numbers import number, plural
from laststand.emulator.report.steps import cuts_of, losses_of
from laststand.emulator.report.strays import strays
from laststand.emulator.report.unread import leader_without
from laststand.emulator.report.words import ACKS_ALL, brokers, capitalized, seconds
from laststand.emulator.report.worst_moment import fewest_copies
from laststand.emulator.verification.facts.losses import CopyFate, LossClass
from laststand.emulator.verification.story.run import Cut, PartitionStory, RunStory
from laststand.emulator.verification.verdict.loss_report import FirstLacking, Loss
from laststand.emulator.verification.verdict.report import Verdict, VerdictReport

_LEFT: Final = {
    LossClass.GONE_EVERYWHERE: ("is gone", "are gone"),
    LossClass.ONLY_UNELECTABLE: ("is only where nobody may lead", "are only where nobody may lead"),
    LossClass.NOT_ON_LEADER: ("is not in the leader's log", "are not in the leader's log"),
    LossClass.GONE_FOR_A_TIME: ("was gone for a time", "were gone for a time"),
    LossClass.GONE_FOR_CONSUMERS: ("is no longer given to consumers", "are no longer given to consumers"),
    LossClass.UNREAD: ("was not read", "were not read"),
}
"""The words for the state of lost records, of one and of several."""

_MIXED: Final = ("is not where it must be", "are not where they must be")
_UNWANTED: Final = frozenset({CopyFate.POWER_LOST, CopyFate.NOT_RECOVERED})


@dataclass(frozen=True, kw_only=True)
class Headline:
    """The first lines of a report: the number, its unit, the reason, and the guarantee."""

    figure: str
    rest: str
    cause: str
    guarantee: str
    reason: str


def headline(verdict: VerdictReport, partitions: list[PartitionStory], story: RunStory) -> Headline:
    """Returns the first lines of the report on a run; its worst partition comes first."""
    acked = sum(counts.acked for counts in verdict.counts if counts.acks == ACKS_ALL)
    lost = sum(counts.lost for counts in verdict.counts if counts.acks == ACKS_ALL)
    guarantee, reason = _guarantee(verdict)
    if verdict.losses:
        what = _what_is_left(verdict, is_one=lost == 1)
        figure, rest = number(lost), f"of {number(acked)} records acknowledged with acks=all {what}"
        cause = _cause_of_loss(verdict, partitions[0], story) if partitions else _first_line(verdict.losses)
    elif verdict.verdict is Verdict.VIOLATION:
        count = len(verdict.violated())
        left = "" if any(check.loses_commits for check in verdict.violated()) else ", and nothing is lost"
        figure, rest = number(count), f"{'check is' if count == 1 else 'checks are'} violated{left}"
        cause = capitalized(f"{verdict.violated()[0].statement}")
    elif verdict.verdict is Verdict.UNKNOWN:
        figure, rest = "Nothing", "is proved: the evidence of this run is not whole"
        cause = capitalized(verdict.doubts[0].sentence) + "." if verdict.doubts else ""
    elif not acked:
        figure, rest = "Nothing", "that was committed is lost; no record was acknowledged with acks=all"
        cause = _reason_kept(partitions[0], story) if partitions else ""
    else:
        figure, rest = f"All {number(acked)}", "records acknowledged with acks=all are still there"
        cause = _reason_kept(partitions[0], story) if partitions else ""
    return Headline(figure=figure, rest=rest, cause=cause, guarantee=guarantee, reason=reason)


def _what_is_left(verdict: VerdictReport, *, is_one: bool) -> str:
    classes = {loss.loss_class for loss in verdict.losses}
    singular, several = _LEFT[classes.pop()] if len(classes) == 1 else _MIXED
    return singular if is_one else several


def _guarantee(verdict: VerdictReport) -> tuple[str, str]:
    if verdict.guarantee is not None:
        worst = next(loss for loss in verdict.losses if loss.guarantee is verdict.guarantee)
        return f"Guarantee {verdict.guarantee.value}.", capitalized(worst.reason) + "."
    if verdict.verdict is Verdict.VALID:
        return "Guarantee kept.", "Every acknowledged record is in the log that decides, and was read."
    if verdict.verdict is Verdict.UNKNOWN:
        return "Guarantee unknown.", f"{plural(len(verdict.doubts), 'doubt')} about the evidence."
    if any(check.loses_commits for check in verdict.violated()):
        kind = verdict.guarantee_of_commits
        judged = "not judged" if kind is None else kind.value
        return f"Guarantee {judged},", "for committed records, none of them acknowledged with acks=all."
    if verdict.worst_guarantee is not None:
        return f"Guarantee {verdict.worst_guarantee.value},", "for records that are there and did not reach a consumer."
    return "Guarantee kept,", "and a rule of the protocol was broken."


def _cause_of_loss(verdict: VerdictReport, partition: PartitionStory, story: RunStory) -> str:
    losses = losses_of(verdict, partition)
    if not losses:  # the story does not have the partition that lost
        return _first_line(verdict.losses)
    parts = []
    fates: dict[CopyFate, set[int]] = {}
    for copy in (copy for loss in losses for copy in loss.copies):
        fates.setdefault(copy.became, set()).add(copy.node)
    elected = next((loss.first_lacking for loss in losses if loss.first_lacking is not None), None)
    first = elected
    powerless = fates.get(CopyFate.POWER_LOST, set())
    if powerless:
        cuts = [cut for cut in partition.cuts if cut.became is CopyFate.POWER_LOST and cut.node in powerless]
        flushed = "with nothing flushed" if all(cut.new_end == 0 for cut in cuts) else "with records not flushed"
        back = ", came back empty" if first is not None and first.log_end_offset == 0 else ""
        if first is not None and powerless == {first.node}:
            parts.append(f"{brokers(powerless)} lost power {flushed}{back} and {_led(first)}")
            first = None
        else:
            parts.append(f"{brokers(powerless)} lost power {flushed}")
    for fate, words in (
        (CopyFate.LOG_DELETED, "deleted the log"),
        (CopyFate.NOT_RECOVERED, "did not recover the records"),
    ):
        if fates.get(fate):
            parts.append(f"{brokers(fates[fate])} {words}")
    cut_before, cut_after = _truncated(partition, losses, elected)
    parts += cut_before
    if first is not None:
        log = "an empty log" if first.log_end_offset == 0 else f"a log that ended at {number(first.log_end_offset)}"
        parts.append(f"broker {first.node} {_led(first)} with {log}")
    unread = _cause_of_unread(losses, partition, story) if elected is None or elected.led_again else ""
    if unread and (elected is not None or not [*parts, *cut_after]):
        cut_after.append(unread)
    cause = "; ".join([*parts, *cut_after])
    return f"{capitalized(cause)}." if cause else _first_line(losses)


def _led(lacking: FirstLacking) -> str:
    return "led again" if lacking.led_again else "was elected leader"


def _first_line(losses: Sequence[Loss]) -> str:
    return next((line.text for loss in losses for line in loss.story), "")


def _truncated(
    partition: PartitionStory, losses: list[Loss], elected: FirstLacking | None
) -> tuple[list[str], list[str]]:
    """Describes which replicas truncated lost records to follow which leader, and when."""
    events = {copy.event for loss in losses for copy in loss.copies if copy.became is CopyFate.TRUNCATED}
    before: dict[int | None, set[int]] = {}
    after: dict[int | None, set[int]] = {}
    for cut in partition.cuts:
        if cut.event in events:
            is_before = elected is not None and (cut.leader_epoch or 0) < elected.leader_epoch
            (before if is_before else after).setdefault(cut.leader, set()).add(cut.node)

    def words(cut: dict[int | None, set[int]], it: int | None) -> list[str]:
        return [
            f"{brokers(nodes)} cut {'their logs' if len(nodes) > 1 else 'its log'}"
            + ("" if leader is None else " to follow it" if leader == it else f" to follow broker {leader}")
            for leader, nodes in cut.items()
        ]

    return words(before, None), words(after, None if elected is None else elected.node)


def _cause_of_unread(losses: list[Loss], partition: PartitionStory, story: RunStory) -> str:
    lacking = leader_without(losses, partition, story)
    if lacking is None:
        return ""
    leader = f"broker {lacking.leader}"
    undone = "" if lacking.undone is None else f"a power loss undid the truncation of {leader}; "
    other = lacking.other_epoch
    log = "a log that lacks them" if other is None else f"records of epoch {other} at their offsets"
    joined = "joined the ISR and was" if lacking.joined is not None else "was"
    return f"{undone}{leader} {joined} elected leader with {log}"


def _reason_kept(partition: PartitionStory, story: RunStory) -> str:
    worst = fewest_copies(partition, story)
    taken = [cut for cut in cuts_of(partition, story) if cut.became in _UNWANTED]
    lost = f"{capitalized(brokers({taken[0].node}))} lost {_lost_words(taken[0])}; " if taken else ""
    if worst is None:
        return f"{capitalized(lost)}nothing was acknowledged with acks=all."
    holders = brokers(worst.holders) if worst.holders else "nobody"
    stray = strays(partition, story)
    if stray:
        words = f"{brokers(stray)} {'is' if len(stray) == 1 else 'are'} no replica any more"
        return f"{capitalized(words)}, and still {'has' if len(stray) == 1 else 'have'} a log that nobody deletes."
    if not taken and len(worst.holders) >= len(_first_replicas(partition)):
        return "No copy of them was ever in danger: every replica kept what it had."
    at_worst = f"at the worst moment, {seconds(worst.time_us)}, only {holders} had all of them, and kept them."
    return f"{lost}{at_worst}" if lost else capitalized(at_worst)


def _first_replicas(partition: PartitionStory) -> tuple[int, ...]:
    return partition.changes[0].replicas if partition.changes else ()


def _lost_words(cut: Cut) -> str:
    how = " in a power loss" if cut.became is CopyFate.POWER_LOST else ""
    return f"{plural(cut.old_end - cut.new_end, 'record')}{how}"
