"""The checks, one per file.

Every module of this package is imported, and its decorator enters its check in the table: a new one is a new file.
"""

import importlib
import pkgutil
from typing import Final

from laststand.emulator.core.promises import PROMISES, PromiseKind
from laststand.emulator.verification.rules.check import ENTERED, ClusterCheck, PartitionCheck

_FAMILIES: Final = "DCHMQXREZL"
"""First letters of ids, in the order of reports."""

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")


def _place(check: PartitionCheck | ClusterCheck) -> tuple[bool, int, int]:
    """Returns a check's place: outcomes come first, and with those of transactions the rules of coordinators."""
    family, number = check.check_id[0], int(check.check_id[1:])
    is_first = PROMISES[check.check_id].kind is PromiseKind.OUTCOME or family == "R"
    return not is_first, _FAMILIES.index(family), number


CHECKS: Final[tuple[PartitionCheck | ClusterCheck, ...]] = tuple(sorted(ENTERED.values(), key=_place))
"""All checks, in the order in which reports list them."""
