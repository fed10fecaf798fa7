"""Which KIPs and issues a check restates, by the words of the module that asks it."""

import re
import sys
from collections.abc import Mapping
from functools import cache
from typing import Final

from emulator.verification.checks import CHECKS

_SOURCE: Final = re.compile(r"\b(?:KIP|KAFKA)-\d+\b")


@cache
def check_sources() -> Mapping[str, str]:
    """Returns what checks restate, by id; an empty text where a check restates nobody's words."""
    documents = {check.check_id: sys.modules[check.find.__module__].__doc__ or "" for check in CHECKS}
    return {check_id: ", ".join(dict.fromkeys(_SOURCE.findall(text))) for check_id, text in documents.items()}
