"""One measured figure and its line of output: ``name=median unit (min-max, n=5)``."""

import statistics

import msgspec


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """Repeated measurements of one quantity.

    Attributes:
        name: lower case with underscores; scripts depend on it.
        unit: ``s``, ``MB/s`` and so on; MB is 2**20 bytes.
        values: one per repetition, at least one.
    """

    name: str
    unit: str
    values: tuple[float, ...]

    def line(self) -> str:
        """Returns the line that a benchmark prints."""
        median = _number(statistics.median(self.values))
        low, high = _number(min(self.values)), _number(max(self.values))
        return f"{self.name}={median} {self.unit} ({low}-{high}, n={len(self.values)})"


def _number(value: float) -> str:
    """Returns three significant digits, or all digits before the point where there are more, without an exponent."""
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.2f}" if abs(value) >= 1 else f"{value:.3f}"
