"""Numbers and numbers of things as reports and listings write them."""

from typing import Final

_THIN_SPACE: Final = "\N{NARROW NO-BREAK SPACE}"


def number(value: int) -> str:
    """Returns a number with thin spaces between thousands."""
    return f"{value:,}".replace(",", _THIN_SPACE)


def plural(count: int, word: str) -> str:
    """Returns a number of things."""
    return f"{number(count)} {word}{'' if count == 1 else 's'}"
