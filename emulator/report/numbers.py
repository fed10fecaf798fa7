"""Numbers and numbers of things as reports and listings write them."""

from typing import Final

from laststand.emulator.plan.nouns import noun

_THIN_SPACE: Final = "\N{NARROW NO-BREAK SPACE}"


def number(value: int) -> str:
    """Returns a number with thin spaces between thousands."""
    return f"{value:,}".replace(",", _THIN_SPACE)


def plural(count: int, word: str) -> str:
    """Returns a number of things."""
    return f"{number(count)} {noun(count, word)}"
