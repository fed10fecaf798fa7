"""Executors of actions on real processes, one per action, each of which verifies that it took effect.

Every module of this package is imported, and ``executes`` enters its executors in the table, so a new executor needs
only a new file.
"""

import importlib
import pkgutil

from laststand.chaos.process.faults.registry import EXECUTORS, execute

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = ["EXECUTORS", "execute"]
