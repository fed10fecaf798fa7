"""Words in blocks of a picture: as many as have room. The script lays them again when the picture is zoomed."""

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
        y: where the words stand.
        class_: of the words.
        indent: from the left edge to the words.
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
