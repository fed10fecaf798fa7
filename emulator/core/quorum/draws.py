"""Random numbers from a seed: the seed is recorded once, as an input, so that every draw can be repeated."""

from typing import Final

_MULTIPLIER: Final = 6364136223846793005
_INCREMENT: Final = 1442695040888963407
_BITS: Final = 64
_UNUSED_BITS: Final = 33
"""The low bits of a linear congruential generator repeat soon."""


class Draws:
    """A linear congruential generator with Knuth's constants."""

    def __init__(self, seed: int) -> None:
        self._state = seed

    def below(self, limit: int) -> int:
        """Draws a number from 0 on; 0 where ``limit`` leaves no choice."""
        self._state = (self._state * _MULTIPLIER + _INCREMENT) % (1 << _BITS)
        return (self._state >> _UNUSED_BITS) % limit if limit > 1 else 0
