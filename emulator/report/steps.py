"""The story of a partition in numbered steps. A step has a place in the picture: its number stands there, too."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from itertools import pairwise
from typing import Final, NamedTuple

from laststand.emulator.core import events
from laststand.emulator.core.types import ChangeReason
from laststand.emulator.report.axes import RecordAxis
from laststand.emulator.report.numbers import number, plural
from laststand.emulator.report.spans import changes_until
from laststand.emulator.report.strays import strays
from laststand.emulator.report.unread import LeaderWithout, leader_without
from laststand.emulator.report.words import brokers, election_words, members
from laststand.emulator.report.worst_moment import fewest_copies
from laststand.emulator.verification.facts.losses import CopyFate
from laststand.emulator.verification.story.run import Cut, PartitionStory, RunStory, StateChange
from laststand.emulator.verification.verdict.loss_report import FirstLacking, Loss
from laststand.emulator.verification.verdict.report import VerdictReport

STEPS_MAX: Final = 9
_SHOWN_ELECTIONS: Final = frozenset({events.Election.ELR, events.Election.LAST_KNOWN_LEADER, events.Election.UNCLEAN})


class Tone(Enum):
    """The part of a step in the loss: neutral, contributed to it, or prevented it."""

    NEUTRAL = "neutral"
    LED = "led"
    SAVED = "saved"


class LanePlace(NamedTuple):
    """The place of a step in the picture: a lane, and the height in it (a part of its height, from below)."""

    lane: str
    height: float


@dataclass(frozen=True, kw_only=True)
class StoryStep:
    """A numbered step."""

    time_us: int
    tone: Tone
    title: str
    text: str
    place: LanePlace


def losses_of(verdict: VerdictReport, partition: PartitionStory) -> list[Loss]:
    """Returns the partition's losses by the verdict."""
    return [loss for loss in verdict.losses if (loss.topic, loss.partition) == (partition.topic, partition.partition)]


def cuts_of(partition: PartitionStory, story: RunStory) -> list[Cut]:
    """Returns the records that logs lost before the end of the run, in the order of time."""
    return sorted((cut for cut in partition.cuts if cut.time_us <= story.end_us), key=lambda cut: cut.time_us)


def story_steps(
    verdict: VerdictReport | None, partition: PartitionStory, story: RunStory, axis: RecordAxis
) -> list[StoryStep]:
    """Returns the numbered steps of a partition's story, in the order of time.

    Without a verdict the run is under way: its last steps are shown, without whether they led to a loss.
    """
    writer = _StepWriter(partition, story, axis)
    if verdict is None:
        so_far = sorted(writer.of_survival(), key=lambda step: step.time_us)
        shown = [replace(step, tone=Tone.NEUTRAL) for step in so_far]
        return _without_gaps(shown, list(range(len(shown)))[-STEPS_MAX:])
    losses = losses_of(verdict, partition)
    found = writer.of_loss(losses) if losses else [*writer.of_survival(), *writer.of_strays()]
    return thinned(sorted(found, key=lambda step: step.time_us))


def thinned(steps: list[StoryStep]) -> list[StoryStep]:
    """Returns as many steps as a story has: the first, then what decided, and of either those nearest to the ends."""

    def rank(place: int) -> tuple[bool, int]:
        is_minor = place > 0 and steps[place].tone is Tone.NEUTRAL
        return is_minor, min(place, len(steps) - 1 - place)

    return _without_gaps(steps, sorted(sorted(range(len(steps)), key=rank)[:STEPS_MAX]))


def _without_gaps(steps: list[StoryStep], kept: list[int]) -> list[StoryStep]:
    """Returns some of the steps; if others are left out, the step before says so, or the first step."""
    shown = [steps[place] for place in kept]
    if kept and kept[0] > 0:
        shown[0] = replace(shown[0], text=f"{shown[0].text} {_left_out(kept[0], 'before')}")
    for number_before, (before, after) in enumerate(pairwise(kept)):
        if after - before > 1:
            step = shown[number_before]
            shown[number_before] = replace(step, text=f"{step.text} {_left_out(after - before - 1, 'after')}")
    return shown


def _left_out(count: int, where: str) -> str:
    return f"{plural(count, 'step')} {where} this one {'is' if count == 1 else 'are'} left out."


def _log_words(log_end: int) -> str:
    return "an empty log" if log_end == 0 else f"a log that ends at {number(log_end)}"


class _StepWriter:
    """Writes the steps of one partition."""

    def __init__(self, partition: PartitionStory, story: RunStory, axis: RecordAxis) -> None:
        self._partition = partition
        self._story = story
        self._axis = axis
        self._changes = changes_until(partition, story.end_us)

    def of_loss(self, losses: list[Loss]) -> list[StoryStep]:
        steps = [self._promise(losses)]
        elected = {loss.first_lacking.leader_epoch: loss.first_lacking for loss in losses if loss.first_lacking}
        nodes = {copy.node for loss in losses for copy in loss.copies}
        events = {copy.event for loss in losses for copy in loss.copies}
        cuts = [cut for cut in cuts_of(self._partition, self._story) if cut.event in events and cut.node in nodes]
        first_us = min([cut.time_us for cut in cuts] or [self._story.end_us])
        steps.extend(self._shrinking(until_us=first_us))
        for lacking in elected.values():
            steps.extend(self._takeover(lacking))
        gone = all(not loss.holders for loss in losses)
        for place, cut in enumerate(cuts):
            steps.append(self._cut(cut, is_last=gone and place == len(cuts) - 1))
        is_shown = cuts or any(not lacking.led_again for lacking in elected.values())
        without = None if is_shown else leader_without(losses, self._partition, self._story)
        return [*steps, *([] if without is None else self._of_leader_without(without))]

    def _takeover(self, lacking: FirstLacking) -> Iterator[StoryStep]:
        """The first leader without the records is elected, or leads again after a restart."""
        if lacking.led_again:
            since_us = [
                each.time_us
                for each in self._partition.leaderships
                if each.is_leading and (each.node, each.leader_epoch) == (lacking.node, lacking.leader_epoch)
            ]
            for time_us in since_us[1:] or since_us:
                yield StoryStep(
                    time_us=time_us,
                    tone=Tone.LED,
                    title=f"Broker {lacking.node} leads again with {_log_words(lacking.log_end_offset)}",
                    text=f"It was restarted, and it still is the leader of epoch {lacking.leader_epoch}.",
                    place=LanePlace("leader", 0.5),
                )
                return
        for change in self._changes:
            if (change.leader_epoch, change.leader) == (lacking.leader_epoch, lacking.node):
                yield self._election(change, lacking.log_end_offset)
                return

    def _of_leader_without(self, lacking: LeaderWithout) -> Iterator[StoryStep]:
        undone, leader = lacking.undone, f"Broker {lacking.leader}"
        if undone is not None:
            yield self._cut(undone.cut, is_last=False, tone=Tone.NEUTRAL)
            yield StoryStep(
                time_us=undone.lost_power_us,
                tone=Tone.LED,
                title=f"{leader} loses power",
                text="Its truncation had not been synced: the records that it had cut off are back.",
                place=LanePlace(f"broker {lacking.leader}", self._height_of(undone.cut)),
            )
        for cut in cuts_of(self._partition, self._story):
            if cut.became is CopyFate.POWER_LOST and cut.time_us <= lacking.elected.time_us:
                yield self._cut(cut, is_last=False, tone=Tone.NEUTRAL)
        epoch = lacking.other_epoch
        others = "It lacks them." if epoch is None else f"It has records of epoch {epoch} in their place."
        if lacking.joined is not None:
            yield StoryStep(
                time_us=lacking.joined.time_us,
                tone=Tone.LED,
                title=f"{leader} joins the ISR without them",
                text=f"ISR {members(lacking.joined.isr)}. {others}",
                place=LanePlace("leader", 0.5),
            )
        elected = self._election(lacking.elected, None)
        yield replace(elected, tone=Tone.LED, title=f"{leader} is elected without them")

    def of_survival(self) -> list[StoryStep]:
        cuts = [cut for cut in cuts_of(self._partition, self._story) if cut.became is not CopyFate.TRUNCATED]
        steps = list(self._shrinking(until_us=cuts[0].time_us if cuts else self._story.end_us))
        steps.extend(self._cut(cut, is_last=False, tone=Tone.NEUTRAL) for cut in cuts)
        for registered in self._story.registrations:
            if not registered.is_first and not registered.is_clean and registered.time_us <= self._story.end_us:
                left = self._left_elr(registered.broker)
                steps.append(
                    StoryStep(
                        time_us=registered.time_us,
                        tone=Tone.SAVED,
                        title=f"Broker {registered.broker} cannot prove a clean shutdown",
                        text="It registered again"
                        + (", and the controller took it out of the ELR: it may not lead." if left else "."),
                        place=LanePlace("leader", 0.5),
                    )
                )
        begin = cuts[0].time_us if cuts else 0
        for change in self._changes:
            is_shown = change.election in _SHOWN_ELECTIONS or (cuts and change.election is events.Election.ISR)
            if change.time_us >= begin and change.leader is not None and is_shown:
                steps.append(self._election(change, None))
        return [*steps, *self._worst()]

    def of_strays(self) -> list[StoryStep]:
        return [
            StoryStep(
                time_us=change.time_us,
                tone=Tone.NEUTRAL,
                title=f"Broker {node} is no replica any more",
                text=f"The replicas are {members(change.replicas)}. Its log is still there in the end.",
                place=LanePlace(f"broker {node}", 0.5),
            )
            for node, change in strays(self._partition, self._story).items()
        ]

    def _left_elr(self, broker: int) -> bool:
        """Returns whether a broker was taken out of the ELR when it registered again."""
        return any(
            change.reason == ChangeReason.BROKER_REGISTERED.replace("_", " ")
            and change.broker == broker
            and broker in before.elr
            and broker not in change.elr
            for before, change in pairwise(self._changes)
        )

    def _worst(self) -> list[StoryStep]:
        worst = fewest_copies(self._partition, self._story)
        replicas = self._changes[0].replicas if self._changes else ()
        if worst is None or not worst.holders or len(worst.holders) >= len(replicas):
            return []
        return [
            StoryStep(
                time_us=worst.time_us,
                tone=Tone.SAVED,
                title=f"Only {brokers(worst.holders)} {'has' if len(worst.holders) == 1 else 'have'} everything",
                text="The fewest copies of what was acknowledged that there ever were.",
                place=LanePlace("copies", self._promised_height(worst.time_us)),
            )
        ]

    def _promise(self, losses: list[Loss]) -> StoryStep:
        acked = [(each.topic_id, each.leader_epoch) for each in losses]
        shown = [
            (self._partition_end(topic_id, epoch), topic_id, epoch) for topic_id, epoch in acked if epoch is not None
        ]
        time_us, topic_id, epoch = max(shown, default=(0, "", 0))
        span = self._axis.span(topic_id, epoch)
        parts = [
            f"{number(loss.records)} by broker {'unknown' if loss.acked_by is None else loss.acked_by}"
            f" (ISR {'unknown' if loss.isr is None else members(loss.isr)})"
            for loss in losses[:4]
        ]
        more = f"; and {number(sum(loss.records for loss in losses[4:]))} more" if len(losses) > 4 else ""
        count = sum(loss.records for loss in losses)
        return StoryStep(
            time_us=time_us,
            tone=Tone.NEUTRAL,
            title=f"{plural(count, 'record')} {'is' if count == 1 else 'are'} acknowledged with acks=all",
            text=f"{'; '.join(parts)}{more}. This is the promise: the black line.",
            place=LanePlace("copies", 0.5 if span is None else span.high),
        )

    def _partition_end(self, topic_id: str, epoch: int) -> int:
        for each in self._partition.promised:
            if (each.topic_id, each.leader_epoch) == (topic_id, epoch):
                return each.ends[-1].time_us
        return 0

    def _promised_height(self, time_us: int) -> float:
        height = 0.0
        for each in self._partition.promised:
            span = self._axis.span(each.topic_id, each.leader_epoch)
            reached = [point.value for point in each.ends if point.time_us <= time_us]
            if span is not None and reached:
                height = max(height, self._axis.height(span, reached[-1]))
        return height

    def _shrinking(self, *, until_us: int) -> list[StoryStep]:
        """The last time before a loss that the ISR became too small to acknowledge acks=all."""
        small = [
            (before, change)
            for before, change in zip([None, *self._changes], self._changes, strict=False)
            if len(change.isr) < change.min_isr
            and change.time_us <= until_us
            and before is not None
            and len(before.isr) >= before.min_isr
        ]
        if not small:
            return []
        before, change = small[-1]
        left = set(before.isr) - set(change.isr) if before is not None else set()
        kept = [f"{brokers(change.elr)} stayed eligible (ELR)."] if change.elr else []
        rest = "".join(kept) or "whoever left it is not remembered."
        return [
            StoryStep(
                time_us=change.time_us,
                tone=Tone.NEUTRAL,
                title=f"Only {brokers(change.isr)} is in sync" if change.isr else "Nobody is in sync",
                text=f"The ISR shrank to {members(change.isr)}, below min ISR {change.min_isr}"
                f"{f', as {brokers(left)} left' if left else ''}; {rest}",
                place=LanePlace("leader", 0.5),
            )
        ]

    def _election(self, change: StateChange, log_end: int | None) -> StoryStep:
        log = "" if log_end is None else _log_words(log_end)
        how = election_words(change.election)
        elr = f", ELR {members(change.elr)}" if change.elr else ""
        return StoryStep(
            time_us=change.time_us,
            tone=Tone.SAVED if log_end is None else Tone.LED,
            title=f"Broker {change.leader} is elected{f' with {log}' if log else ''}",
            text=f"Epoch {change.leader_epoch}{f', {how}' if how else ''}; ISR {members(change.isr)}{elr}.",
            place=LanePlace("leader", 0.5),
        )

    def _cut(self, cut: Cut, *, is_last: bool, tone: Tone = Tone.LED) -> StoryStep:
        last = " That was the last copy." if is_last else ""
        span = f"{number(cut.old_end)} to {number(cut.new_end)}"
        match cut.became:
            case CopyFate.TRUNCATED:
                title = f"Broker {cut.node} cuts its log"
                leader = "" if cut.leader is None else f", to follow broker {cut.leader} in epoch {cut.leader_epoch}"
                words = f"From {span}{f' ({cut.reason})' if cut.reason else ''}{leader}."
            case CopyFate.POWER_LOST:
                title = f"Broker {cut.node} loses power"
                kept = "nothing had been flushed" if cut.new_end == 0 else "the rest had not been flushed"
                words = f"Its log ended at {number(cut.old_end)} before and at {number(cut.new_end)} after: {kept}."
            case CopyFate.LOG_DELETED:
                title, words = f"Broker {cut.node} deletes its log", f"It ended at {number(cut.old_end)}."
            case _:
                title, words = f"Broker {cut.node} starts with less", f"Its log went from {span}."
        return StoryStep(
            time_us=cut.time_us,
            tone=tone,
            title=title,
            text=words + last,
            place=LanePlace(f"broker {cut.node}", self._height_of(cut)),
        )

    def _height_of(self, cut: Cut) -> float:
        spans = [span for span in self._axis.spans if span.topic_id == cut.topic_id and span.first < cut.old_end]
        own = [
            span
            for span in spans
            if any(
                each.node == cut.node
                and (each.topic_id, each.leader_epoch) == span.key
                and each.ends[0].time_us <= cut.time_us
                for each in self._partition.held
            )
        ]
        if not own:
            return 0.5
        low = next((span for span in own if span.end > cut.new_end), own[0])
        return (self._axis.height(low, cut.new_end) + own[-1].high) / 2
