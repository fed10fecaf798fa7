"""Blocks of a lane that are too close together to be drawn separately: they must not make a page larger."""

from collections.abc import Collection, Sequence
from typing import Final

APART_MAX: Final = 160
"""Blocks that a lane draws each for itself, however narrow. Where there are more, narrow ones are joined."""

CROWDED: Final = "crowded"
"""The class of blocks that are drawn as one."""

_NARROW: Final = 4.5


def drawn_apart(edges: Sequence[float], *, kept: Collection[int] = ()) -> list[range]:
    """Returns the blocks of a lane that are drawn as one, in order; a block with enough room is drawn by itself.

    In a picture that is 720 wide these are at most 320 and twice those that are kept, however many blocks there are.

    Args:
        edges: the beginning of each block, and the end of the last one.
        kept: places of blocks that are never joined.
    """
    count = len(edges) - 1
    if count <= APART_MAX:
        return [range(place, place + 1) for place in range(count)]
    found: list[range] = []
    begin = 0
    for place in range(count):
        if place in kept or edges[place + 1] - edges[place] >= _NARROW:
            found += [range(begin, place)] if begin < place else []
            found.append(range(place, place + 1))
            begin = place + 1
        elif edges[place + 1] - edges[begin] >= _NARROW:
            found.append(range(begin, place + 1))
            begin = place + 1
    return [*found, range(begin, count)] if begin < count else found


def too_close(count: int) -> str:
    """Returns the words for several changes that are drawn as one."""
    return f"{count} changes, too close together to be drawn apart"
