"""Names of the additional reports that a scenario may request by ``report:``."""

from typing import Final

ACKS_COMPARISON: Final = "acks-comparison"
"""The worth of acks 0, 1 and all below min ISR (``acks_comparison.py``)."""
