"""Asks TLC whether traces of runs follow ``docs/tla/Trace.tla``; many in one go, as a JVM takes seconds to start."""

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from laststand.emulator.core.errors import ConfigError
from laststand.emulator.report.shiviz import LoggedEvent
from laststand.emulator.report.tla import MODULE, Rejection, outcomes_of, tla_configuration, tla_module
from tests.tla.model_checker import SPECIFICATION, TRACE_SPECIFICATION, ModelCheckerError, run_tlc


def check_traces(
    runs: Iterable[Sequence[LoggedEvent]], rules: dict[str, str], directory: Path
) -> tuple[Rejection | None, ...]:
    """Returns where each trace is rejected, ``None`` where it is accepted; a run has one for each of its partitions.

    Args:
        runs: events of each.
        rules: switches that the specification goes by.
        directory: an empty one.

    Raises:
        ModelCheckerError: TLC did not come to an end.
        NotSpecifiedError: something happened in a run that the specification does not have.
    """
    (directory / f"{MODULE}.tla").write_text("\n".join(tla_module(runs)), encoding="utf-8")
    (directory / f"{MODULE}.cfg").write_text("\n".join(tla_configuration(rules)), encoding="utf-8")
    return check_module(directory)


def check_module(directory: Path) -> tuple[Rejection | None, ...]:
    """Returns the same for what ``laststand export --to tla`` left in a directory.

    Raises:
        ModelCheckerError: TLC did not come to an end.
    """
    for specification in (SPECIFICATION, TRACE_SPECIFICATION):
        shutil.copy(specification, directory)
    try:
        return outcomes_of(run_tlc(MODULE, directory))
    except ConfigError as error:
        raise ModelCheckerError(error.value) from None
