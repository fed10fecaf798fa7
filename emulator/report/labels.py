"""Texts in blocks of a picture: as much as there is room for. The script places them again after zooming."""

from collections.abc import Sequence
from html import escape
from typing import Final

from laststand.emulator.report.markup import element

CHARACTER: Final = 6.1
"""Width of a letter of a label."""

_BETWEEN: Final = "|"


def fits(words: str, width: float, *, character: float = CHARACTER) -> bool:
    """Returns whether words have room."""
    return len(words) * character + 8 <= width


def block_label(
    words: Sequence[str],
    left: float,
    right: float,
    y: float,
    class_: str,
    *,
    indent: float = 5.0,
    character: float = CHARACTER,
) -> str:
    """Returns the text of a block; empty if not even the shortest text has room.

    Args:
        words: texts, from the longest to the shortest.
        left: edge of the block.
        right: its other edge.
        y: vertical place of the text.
        class_: of the words.
        indent: distance from the left edge to the text.
        character: width of a letter.
    """
    room = right - left - indent + 5
    shown = next((each for each in words if fits(each, room, character=character)), "")
    return element(
        "text",
        escape(shown),
        x=left,
        dx=indent,
        y=y,
        class_=class_,
        data_right=right,
        data_words=_BETWEEN.join(words),
    )
