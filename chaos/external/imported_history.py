"""Makes a run directory from a foreign history."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from laststand.chaos.external.client_run import ClientRun
from laststand.chaos.external.foreign_history import NODE, converted
from laststand.chaos.external.history_formats import read_foreign_history
from laststand.emulator.client.history import HISTORY_FILE, rewrite_history
from laststand.emulator.core.errors import ConfigError
from laststand.emulator.core.types import BrokerId


def import_history(paths: Sequence[Path], target: Path, *, era: str, has_read_to_end: bool) -> None:
    """Makes a run directory, whole or not at all.

    Args:
        paths: files of one history.
        target: must not exist.
        era: era whose rules judge it.
        has_read_to_end: the last reader of each partition had read to its end.

    Raises:
        ConfigError: a file is no history.
        OSError: a file cannot be read or written.
    """
    found = read_foreign_history(paths)
    history = converted(found.operations, is_ordered=found.problem is None)
    if not history.operations:
        raise ConfigError(key="FILE", value=str(paths[0]), expected="a history with operations")
    names = ", ".join(path.name for path in paths)
    run = ClientRun(target, era=era, broker_ids=(BrokerId(NODE),), description=f"A history of others: {names}.")
    try:
        rewrite_history(target / HISTORY_FILE, history.operations)
        if history.has_ends or (has_read_to_end and found.problem is None):
            run.note_settled()
        run.close(problem=found.problem or history.problem)
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        raise
