"""Whose rules checks restate, for reports on verdicts, which name checks by id."""

from collections.abc import Mapping
from functools import cache

from laststand.emulator.verification.rules.checks import CHECKS


@cache
def check_sources() -> Mapping[str, str]:
    """Returns what checks restate, by id."""
    return {check.check_id: check.source for check in CHECKS}
