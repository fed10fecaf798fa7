"""One run as the source of table rows: its evidence, its clients' operations, its clock.

A run that cannot be read completely fills no tables: figures without a part of the evidence would be wrong without
looking wrong. A complete run that proves nothing (a fault had no effect, say) fills the tables, and its verdict shows
that. A run that was imported from a real cluster fills them, too: it has no history and no records of how processes
ended, but everything that its logs record.
"""

import typing
from collections.abc import Iterator
from typing import Final

import msgspec

from laststand.emulator.analysis.schema import Nanoseconds, Seconds
from laststand.emulator.core import events
from laststand.emulator.core.history import Operation
from laststand.emulator.core.packed.reading import is_packed, json_lines
from laststand.emulator.verification.doubts.evidence import doubts_about_files, find_doubts
from laststand.emulator.verification.reading.run import RunEvidence, read_run
from laststand.emulator.verification.reading.run_directory import RunDirectory
from laststand.emulator.verification.reading.run_plan import ReadLedger, RunPlan, differences


class _Line(msgspec.Struct, frozen=True):
    f: str


_LINE: Final = msgspec.json.Decoder(_Line)
_OPERATION: Final[msgspec.json.Decoder[Operation]] = msgspec.json.Decoder(Operation)
_OPERATIONS: Final = frozenset(kind.__struct_config__.tag for kind in typing.get_args(Operation))


class RunClock(msgspec.Struct, frozen=True, kw_only=True):
    """The first and last moment of a run, by the clock of its events."""

    begin_ns: Nanoseconds
    end_ns: Nanoseconds

    def seconds(self, time_ns: int) -> Seconds:
        """Returns the time since the run's first event."""
        return self.span(self.begin_ns, time_ns)

    def span(self, begin_ns: int, end_ns: int) -> Seconds:
        """Returns the time between two moments."""
        return Seconds((end_ns - begin_ns) / 1e9)


class RunSource(msgspec.Struct, frozen=True, kw_only=True):
    """The sources of one run's tables.

    Attributes:
        operations: lines of the clients' histories, in the order of each history.
    """

    run: RunDirectory
    evidence: RunEvidence
    operations: tuple[Operation, ...]
    clock: RunClock


class BrokenRunError(Exception):
    """A run that fills no tables; the message has the reason."""


def read_source(plan: RunPlan) -> RunSource:
    """Reads a run.

    Raises:
        BrokenRunError: some evidence is missing or cannot be read.
        OSError: a file cannot be read.
    """
    evidence = read_run(plan.run)
    if plan.run.is_imported:
        doubts = tuple(doubts_about_files(evidence.timeline, evidence.files))
    else:
        doubts = tuple(doubt for doubt in find_doubts(evidence) if doubt.about is not None)
    faults = [*(doubt.sentence for doubt in doubts), *differences(plan, evidence.sizes)]
    if faults:
        more = f" (and {len(faults) - 1} more such reasons)" if len(faults) > 1 else ""
        raise BrokenRunError(f"{faults[0]}{more}")
    operations = tuple(_operations(plan.run))
    return RunSource(run=plan.run, evidence=evidence, operations=operations, clock=_clock(evidence, operations))


def _operations(run: RunDirectory) -> Iterator[Operation]:
    for path in run.histories:
        for block in ReadLedger(run.path).blocks(path):
            for line in (json_lines(block) if is_packed(path) else block).splitlines():
                if _LINE.decode(line).f in _OPERATIONS:
                    yield _OPERATION.decode(line)


def _clock(evidence: RunEvidence, operations: tuple[Operation, ...]) -> RunClock:
    begins = [started.time_ns for started in evidence.facts.cluster.events.of(events.NodeStarted)]
    ends = [collected.time_ns for collected in evidence.timeline.events]
    return RunClock(
        begin_ns=Nanoseconds(min(begins)),
        end_ns=Nanoseconds(max([*ends, *(operation.time_ns for operation in operations)])),
    )
