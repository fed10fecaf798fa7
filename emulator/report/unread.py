"""Explains why records were not read that logs still hold: the leader lacks them, although it joined the ISR."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from laststand.emulator.core import events
from laststand.emulator.report.spans import changes_until
from laststand.emulator.verification.facts.losses import CopyFate
from laststand.emulator.verification.story.run import Cut, PartitionStory, RunStory, StateChange
from laststand.emulator.verification.verdict.loss_report import Loss


class UndoneCut(NamedTuple):
    """A truncation whose records are back in the final log, and the power loss after it."""

    cut: Cut
    lost_power_us: int


class LeaderWithout(NamedTuple):
    """A leader whose log lacks acknowledged records.

    Attributes:
        leader: the leader's broker.
        elected: the change that made it the final leader.
        joined: the last earlier change by which it joined the ISR; ``None`` if it was always in it.
        other_epoch: epoch of the records that its log has at the offsets of the missing ones, if any.
        undone: its truncation that a power loss undid, if any.
    """

    leader: int
    elected: StateChange
    joined: StateChange | None
    other_epoch: int | None
    undone: UndoneCut | None


def leader_without(losses: Sequence[Loss], partition: PartitionStory, story: RunStory) -> LeaderWithout | None:
    """Returns the last leader, if its log lacks records that others hold; ``None`` if records were lost otherwise."""
    changes = changes_until(partition, story.end_us)
    leader = changes[-1].leader if changes else None
    lacking = [loss for loss in losses if loss.holders and leader not in loss.holders]
    if leader is None or not lacking:
        return None
    place = len(changes) - 1
    while place and changes[place - 1].leader == leader:
        place -= 1
    joined = [
        change for before, change in pairwise(changes[: place + 1]) if leader in change.isr and leader not in before.isr
    ]
    return LeaderWithout(
        leader=leader,
        elected=changes[place],
        joined=joined[-1] if joined else None,
        other_epoch=_other_epoch(lacking, partition, leader),
        undone=_undone(partition, story, leader),
    )


def _other_epoch(losses: Sequence[Loss], partition: PartitionStory, leader: int) -> int | None:
    """Returns the epoch of a final log's records at the offsets of lost records."""
    for final in partition.final:
        for loss in losses:
            is_other = final.leader_epoch != loss.leader_epoch and final.topic_id == loss.topic_id
            overlaps = any(span.first <= final.last and final.first <= span.last for span in loss.offsets)
            if final.node == leader and is_other and overlaps:
                return final.leader_epoch
    return None


def _undone(partition: PartitionStory, story: RunStory, node: int) -> UndoneCut | None:
    ended = [each for each in story.processes if each.node == node and each.end is events.IncarnationEnd.POWER_LOST]
    for cut in partition.cuts:
        if cut.node != node or cut.became is not CopyFate.TRUNCATED:
            continue
        lost_power = [each.ended_us for each in ended if each.ended_us is not None and each.ended_us >= cut.time_us]
        if lost_power and _is_back(cut, partition):
            return UndoneCut(cut, min(lost_power))
    return None


def _is_back(cut: Cut, partition: PartitionStory) -> bool:
    """Returns whether the final log has truncated records again, without an event that records their return."""
    left = {
        each.leader_epoch: each.ends[-1].value
        for each in partition.held
        if (each.node, each.topic_id) == (cut.node, cut.topic_id) and each.ends[0].time_us <= cut.time_us
    }
    return any(
        (each.node, each.topic_id) == (cut.node, cut.topic_id)
        and left.get(each.leader_epoch, each.last + 1) <= each.last
        for each in partition.final
    )
