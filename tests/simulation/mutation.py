"""The mutation score: each rule switched off must be found, and verified from the event log: ``make mutation``.

A mutant is found when an outcome check fires in the simulator within the limit, and verification calls the run of the
shrunk plan a violation too. Seconds are of one core's time, so that a busy machine does not change the score. Prints a
line per mutant and, last, how many of them were found. Where a row says that there is nothing to find, it is searched
as well; such a mutant never counts as found.
"""

import argparse
import itertools
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

import msgspec

from emulator.simulator.explorer import Ambition, Orders, explore
from emulator.simulator.oracle.finding import CheckKind
from emulator.simulator.run_writer import write_run
from emulator.simulator.shrink import Goal, Shrunk, shrink
from emulator.verification.session import SparkSessionStarter
from emulator.verification.verdict import Verdict
from emulator.verification.verify import verify_runs
from tests.simulation.mutants import MUTANTS, Harmless, Lethal, Mutant, mutants

LENGTH_MAX: Final = 15
"""Of a shrunk plan."""

_NOT_ENOUGH: Final = frozenset({"D15"})
"""Here whatever was committed must not be cut off; to verification it counts once it was acknowledged."""


class Attempt(msgspec.Struct, kw_only=True):
    """What became of one mutant.

    Attributes:
        mutant: which.
        row: what is expected of it.
        schedules: explored.
        seconds: of processor time, until it was found or given up.
        shrunk: the plan that shows it.
        run: where its run was written.
        is_verified: whether verification calls that run a violation.
    """

    mutant: Mutant
    row: Lethal | Harmless
    schedules: int
    seconds: float
    shrunk: Shrunk | None = None
    run: Path | None = None
    is_verified: bool = False

    @property
    def is_found(self) -> bool:
        """Whether both the simulator and verification saw it, in a plan that a person can read."""
        return self.shrunk is not None and self.is_verified and self.shrunk.plan.length <= LENGTH_MAX

    @property
    def is_as_expected(self) -> bool:
        """Whether it was found if, and only if, its row says that it can be."""
        return self.is_found if isinstance(self.row, Lethal) else self.shrunk is None

    def line(self) -> str:
        """Returns the mutant's line."""
        name = f"{'='.join(self.mutant):<36} {self.row.scenario:<4}"
        effort = f"{self.schedules} schedules, {self.seconds:.1f} s"
        if self.shrunk is not None:
            verified = "verified" if self.is_verified else "NOT VERIFIED"
            check_id = self.shrunk.finding.check_id
            return f"{name} {check_id:<4} {effort}, length {self.shrunk.plan.length}, {verified}"
        if isinstance(self.row, Lethal):
            return f"{name} NOT FOUND in {effort}"
        if self.row.evidence is not None:
            return f"{name} no loss within the guarantee in {effort}, shown by {self.row.evidence}"
        return f"{name} no loss within the guarantee in {effort}, argued only: {self.row.why}"


def hunt(mutant: Mutant, row: Lethal | Harmless, *, limit_s: float, directory: Path) -> Attempt:
    """Explores until an outcome check fires, shrinks what led there, and writes its run."""
    orders = Orders(switches=(mutant,), ambition=Ambition.OUTCOME)
    if isinstance(row, Lethal):
        orders = msgspec.structs.replace(orders, profiles=row.profiles)
    started = time.process_time()
    for seed in itertools.count():
        schedule = explore(seed, orders)
        attempt = Attempt(mutant=mutant, row=row, schedules=seed + 1, seconds=time.process_time() - started)
        goals = (Goal(kind=f.kind, check_id=f.check_id, unless=_NOT_ENOUGH) for f in schedule.outcome.findings)
        goal = next((g for g in goals if g.kind is CheckKind.OUTCOME and g.check_id not in g.unless), None)
        if goal is not None:
            attempt.shrunk = shrink(schedule.plan, goal)
        if attempt.shrunk is not None:
            attempt.run = directory / "-".join(mutant)
            write_run(attempt.shrunk.plan, attempt.run, name="=".join(mutant))
        if attempt.shrunk is not None or attempt.seconds >= limit_s:
            return attempt
    raise AssertionError("there is always a next seed")


def main() -> int:
    """Hunts every mutant, then verifies all runs in one Spark job."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for each mutant")
    parser.add_argument("--only", action="append", metavar="SWITCH=RULE", help="this mutant; may be repeated")
    options = parser.parse_args()
    missing = [mutant for mutant in mutants() if mutant not in MUTANTS]
    if missing:
        sys.stdout.write(f"no row in tests/simulation/mutants.py: {', '.join(map('='.join, missing))}\n")
        return 1
    chosen = [mutant for mutant in mutants() if options.only is None or "=".join(mutant) in options.only]
    with tempfile.TemporaryDirectory(prefix="laststand-mutation-") as directory:
        attempts = [hunt(each, MUTANTS[each], limit_s=options.limit, directory=Path(directory)) for each in chosen]
        written = [(attempt, attempt.run) for attempt in attempts if attempt.run is not None]
        if written:
            with SparkSessionStarter(log_path=Path(directory) / "spark.log") as spark:
                reports = verify_runs([run for _, run in written], spark=spark)
            for (attempt, _), report in zip(written, reports, strict=True):
                attempt.is_verified = report.verdict is Verdict.VIOLATION
    for attempt in attempts:
        sys.stdout.write(attempt.line() + "\n")
    found = sum(attempt.is_found for attempt in attempts)
    harmless = [attempt.row for attempt in attempts if isinstance(attempt.row, Harmless)]
    shown = sum(row.evidence is not None for row in harmless)
    sys.stdout.write(
        f"not found as they lose nothing within the guarantee: {shown} that a plan shows to make a difference, "
        f"{len(harmless) - shown} that are argued only\n{found} of {len(attempts)} found\n"
    )
    return 0 if all(attempt.is_as_expected for attempt in attempts) else 1


if __name__ == "__main__":
    sys.exit(main())
