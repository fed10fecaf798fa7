"""Draws a run that is under way: the pictures of its report, without lost records, which only the oracle determines."""

from typing import Final

import msgspec
from markupsafe import Markup

from laststand.emulator.report.figure import draw
from laststand.emulator.report.moments import Moments, moments_of
from laststand.emulator.report.steps import StoryStep
from laststand.emulator.verification.story.run import PartitionStory, RunStory

DRAWN_MAX: Final = 3
"""Partitions that are drawn: those in need first, then those with most records."""


class LivePicture(msgspec.Struct, frozen=True, kw_only=True):
    """A partition: its name, its picture, the steps that are numbered in it, and the data for the script."""

    name: str
    prefix: str
    svg: Markup
    steps: tuple[StoryStep, ...]
    moments: Moments


def pictures_of(story: RunStory, *, prefix: str) -> list[LivePicture]:
    """Draws the partitions that are worth looking at.

    Args:
        story: of the run so far.
        prefix: of all ids in the pictures.
    """
    drawn = sorted(story.partitions, key=_need)[:DRAWN_MAX]
    return [_picture(story, partition, f"{prefix}p{place}-") for place, partition in enumerate(drawn)]


def _picture(story: RunStory, partition: PartitionStory, prefix: str) -> LivePicture:
    figure = draw(None, partition, story, prefix=prefix, scale=0.8)
    return LivePicture(
        name=f"{partition.topic}-{partition.partition}",
        prefix=prefix,
        svg=Markup(figure.svg),
        steps=figure.steps,
        moments=moments_of(figure, figure=f"{prefix}figure"),
    )


def _need(partition: PartitionStory) -> tuple[bool, bool, int, str, int]:
    now = partition.changes[-1] if partition.changes else None
    has_leader = now is not None and now.leader is not None
    is_few = now is not None and len(now.isr) < now.min_isr
    records = sum(each.last - each.first for each in partition.final)
    return has_leader, not is_few, -records, partition.topic, partition.partition
