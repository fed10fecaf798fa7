"""A partition in small: the number of copies of each record over time."""

from typing import Final

from markupsafe import Markup

from laststand.emulator.report.copies_lane import copies_shapes
from laststand.emulator.report.figure import picture_of
from laststand.emulator.report.markup import element
from laststand.emulator.report.picture import Box
from laststand.emulator.verification.story.run import PartitionStory, RunStory
from laststand.emulator.verification.verdict.report import VerdictReport

_WIDTH: Final = 150.0
_HEIGHT: Final = 44.0
_FINAL_WIDTH: Final = 22.0


def thumbnail(verdict: VerdictReport, partition: PartitionStory | None, story: RunStory) -> Markup:
    """Draws a partition; an empty frame if no log ever held records."""
    parts: list[str] = []
    if partition is not None and partition.held:
        right = _WIDTH - _FINAL_WIDTH
        picture = picture_of(verdict, partition, story, left=0.0, right=right, final_width=_FINAL_WIDTH)
        parts = copies_shapes(picture, Box(0.0, 0.0, right, _HEIGHT))
    return Markup(element("svg", *parts, viewBox=f"0 0 {_WIDTH:.0f} {_HEIGHT:.0f}", aria_hidden="true", class_="blank"))
