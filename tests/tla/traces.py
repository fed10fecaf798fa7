"""Asks TLC whether traces of runs follow ``docs/tla/Trace.tla``; many in one go, as a JVM takes seconds to start."""

import re
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from laststand.emulator.report.shiviz import LoggedEvent
from laststand.emulator.report.tla import MODULE, tla_configuration, tla_module
from tests.tla.model_checker import SPECIFICATION, TRACE_SPECIFICATION, ModelCheckerError, run_tlc


class Rejection(NamedTuple):
    """The first line that the specification cannot follow.

    Attributes:
        line: its number in the trace, from 1 on.
        action: that does not allow it.
        place: where it was written: node, incarnation and sequence.
    """

    line: int
    action: str
    place: str


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
    output = run_tlc(MODULE, directory)
    found: dict[int, Rejection | None] = {
        int(trace): None for trace in re.findall(r'^<<"accepted", (\d+)>>', output, re.MULTILINE)
    }
    for trace, line, action, place in re.findall(
        r'^<<"rejected", (\d+), (\d+), "(\w+)", "([^"]+)">>', output, re.MULTILINE
    ):
        found[int(trace)] = Rejection(int(line), action, place)
    ended = re.search(r'^<<"traces", (\d+)>>', output, re.MULTILINE)
    if "No error has been found" not in output or ended is None or len(found) > int(ended[1]):
        raise ModelCheckerError(output[-2000:])
    # A trace that came to no end of its own was cut off.
    return tuple(
        found.get(trace, Rejection(0, "Finish", "the trace ends before it")) for trace in range(1, int(ended[1]) + 1)
    )
