"""Results of a suite: one per cell, in a form that is written as JSON and read again."""

from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import Final

import msgspec

from laststand.chaos.suite.cells import Cell, column_of, name_of_cell
from laststand.emulator.core.eras import era_label
from laststand.emulator.core.errors import ConfigError
from laststand.emulator.user_files import read_bytes
from laststand.emulator.verification.verdict.junit import doubts, failure_text
from laststand.emulator.verification.verdict.report import Expected, VerdictReport, headline

VERSION: Final = 1


class CellStatus(Enum):
    """The result of a cell."""

    PASSED = "passed"
    """The result is as the scenario expects for the era; without an expectation, the verdict is valid."""

    FAILED = "failed"
    UNKNOWN = "unknown"
    """Played, and not decided."""

    SKIPPED = "skipped"
    NOT_PLAYED = "not played"
    """The suite ended before its turn, or before its verdict."""


_STATUS: Final = {
    Expected.MET: CellStatus.PASSED,
    Expected.MISSED: CellStatus.FAILED,
    Expected.UNDECIDED: CellStatus.UNKNOWN,
}


class CellResult(msgspec.Struct, frozen=True, kw_only=True):
    """One cell.

    Attributes:
        scenario: name of the scenario.
        path: of the scenario file.
        line: of the expectation for the era in that file, from 1; 1 if there is none.
        era: name of the era.
        changed: its changes of the era's rules and the scenario's properties, as ``name=value``.
        repetition: from 1.
        seed: of its random choices.
        status: the result of the cell.
        reasons: why it did not pass, in words.
        story: how the first record was lost, if the cell failed.
        picture: of the run as lines, if it did not pass and there is one.
        directory: of the run; ``None`` if there was none, or if it was not kept.
        verdict: valid, violation or unknown; ``None`` if it was not judged.
        guarantee: broken or exceeded; ``None`` if it was kept.
        lost: number of lost records that were acknowledged with acks=all.
        duration_s: how long it was played.
        unavailable_s: the longest time that a producer waited for an acknowledgement; ``None`` if none did.
        leaderless_s: for how long the worst partition had no leader.
        below_min_isr_s: for how long the worst partition had a leader, and an ISR that acks=all does not accept.
        fault_to_ack_s: the longest time from a fault to the first acknowledgement of a record that was sent after it;
            ``None`` without a fault, or without such an acknowledgement.
        left_out: the first step that was left out, and why; ``None`` if all were played.
        driver: its driver, if the suite had several; ``None`` for the suite's only one.
    """

    scenario: str
    path: str
    line: int
    era: str
    repetition: int
    seed: int
    status: CellStatus
    reasons: tuple[str, ...] = ()
    story: tuple[str, ...] = ()
    picture: tuple[str, ...] = ()
    directory: str | None = None
    verdict: str | None = None
    guarantee: str | None = None
    lost: int | None = None
    duration_s: float | None = None
    unavailable_s: float | None = None
    leaderless_s: float | None = None
    below_min_isr_s: float | None = None
    fault_to_ack_s: float | None = None
    left_out: str | None = None
    driver: str | None = None
    changed: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The text that distinguishes the cell from all others."""
        return name_of_cell(self.scenario, self.column, self.repetition)

    @property
    def column(self) -> str:
        """The column of the matrix in which the cell is."""
        return column_of(era_label(self.era, self.changed), self.driver)

    def failure_lines(self) -> list[str]:
        """Returns status, seed and reasons in one line, then the story, then the run directory."""
        lines = [f"{self.status.value}: {self.name}, seed {self.seed}: {'; '.join(self.reasons)}", *self.story]
        if self.directory is not None:
            lines.append(f"run directory: {self.directory}")
        return lines


class SuiteReport(msgspec.Struct, frozen=True, kw_only=True):
    """A whole suite.

    Attributes:
        version: of this form.
        driver: of the cells that name none.
        kafka: the version of Apache Kafka that played cells; ``None`` if none did.
        settings: values of ``--set``.
        shard: the part of the suite that these cells are, as ``2/4``; ``None`` for all of it.
        started: by the calendar, ISO 8601, UTC.
        duration_s: from the first cell's start to the last verdict.
        cells: in the order in which they were to be played.
    """

    version: int = VERSION
    driver: str
    kafka: str | None = None
    settings: tuple[str, ...]
    started: str
    duration_s: float
    cells: tuple[CellResult, ...]
    shard: str | None = None

    def count(self, status: CellStatus) -> int:
        """Returns the number of cells with that result."""
        return sum(cell.status is status for cell in self.cells)

    @property
    def outcome(self) -> Expected:
        """The outcome of the worst cell; a suite without a played cell is undecided."""
        if self.count(CellStatus.FAILED):
            return Expected.MISSED
        undecided = self.count(CellStatus.UNKNOWN) + self.count(CellStatus.NOT_PLAYED)
        return Expected.UNDECIDED if undecided or not self.count(CellStatus.PASSED) else Expected.MET


def judged_result(
    cell: Cell,
    report: VerdictReport,
    *,
    directory: Path | None,
    picture: tuple[str, ...] = (),
    left_out: str | None = None,
) -> CellResult:
    """Returns the result of a cell that was judged.

    Args:
        cell: the cell.
        report: the verdict.
        directory: of its run, if it is kept.
        picture: of its run as lines, if it did not pass and there is one.
        left_out: the first step that was left out, and why.
    """
    status = _STATUS[report.outcome]
    reasons: tuple[str, ...] = ()
    if status is CellStatus.UNKNOWN:
        reasons = report.unknown_reasons or doubts(report)
    elif status is CellStatus.FAILED:
        reasons = report.misses or (headline(report),)
    return msgspec.structs.replace(
        unplayed_result(cell, status=status),
        reasons=reasons,
        story=failure_text(report) if status is CellStatus.FAILED else (),
        picture=picture,
        directory=None if directory is None else str(directory),
        verdict=report.verdict.value,
        guarantee=None if report.guarantee is None else report.guarantee.value,
        lost=report.lost_records,
        duration_s=report.duration_s,
        unavailable_s=report.unavailable_s,
        leaderless_s=report.leaderless_s,
        below_min_isr_s=report.below_min_isr_s,
        fault_to_ack_s=report.fault_to_ack_s,
        left_out=left_out,
    )


def unplayed_result(cell: Cell, *, status: CellStatus, reason: str | None = None) -> CellResult:
    """Returns the result of a cell without a verdict."""
    scenario = cell.scenario
    expectation = scenario.expectation(cell.era_label)
    return CellResult(
        scenario=scenario.name,
        path=str(scenario.path),
        line=1 if expectation is None else expectation.line,
        era=cell.era,
        changed=cell.changed,
        repetition=cell.repetition,
        seed=cell.seed,
        status=status,
        reasons=() if reason is None else (reason,),
        driver=None if cell.driver is None else cell.driver.value,
    )


def write_report(report: SuiteReport, path: Path) -> None:
    """Writes the report as JSON.

    Raises:
        OSError: the file cannot be written.
    """
    path.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n")


def read_report(path: Path) -> SuiteReport:
    """Inverse of ``write_report``.

    Raises:
        ConfigError: the file is not a suite's results, or of another version.
    """
    try:
        report = msgspec.json.decode(read_bytes(path), type=SuiteReport)
    except OSError as error:
        raise ConfigError(key="--rerun", value=str(path), expected=f"a suite's results ({error.strerror})") from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(key="--rerun", value=str(path), expected=f"a suite's results ({error})") from None
    if report.version != VERSION:
        raise ConfigError(key="--rerun", value=str(path), expected=f"results of version {VERSION}")
    return report


def to_play_again(report: SuiteReport) -> Sequence[CellResult]:
    """Returns the cells that failed, or were not decided."""
    again = (CellStatus.FAILED, CellStatus.UNKNOWN, CellStatus.NOT_PLAYED)
    return [cell for cell in report.cells if cell.status in again]
