"""What a fault reports: that it bit, or that it was mended, and how that showed."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Injury:
    """A fault that was injected.

    Attributes:
        fault: its name, as in the event log.
        target: node ids or links, in words.
        bit: how it was seen to take effect; ``None`` means that it was a no-op.
    """

    fault: str
    target: str
    bit: str | None


@dataclass(frozen=True, kw_only=True)
class Recovery:
    """A fault that was mended; ``seen`` is how that showed, ``None`` if it did not."""

    fault: str
    target: str
    seen: str | None
