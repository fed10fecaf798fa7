"""Pure decisions about the segments of a log: whether one is full, and whether the next one continues it."""

from laststand.emulator.core.types import Offset


def is_segment_full(size: int, more: int, *, segment_bytes: int) -> bool:
    """Returns whether a batch of ``more`` bytes needs a new segment (``segment.bytes``); an empty one takes any."""
    return size > 0 and size + more > segment_bytes


def has_hole(end_offset: Offset, next_base: Offset) -> bool:
    """Returns whether a segment lost whole batches at its end, as the next one begins beyond it: S47."""
    return next_base > end_offset
