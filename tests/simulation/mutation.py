"""The mutation score: each rule switched off must be found, and verified from the event log: ``make mutation``.

A mutant is found when an outcome check fires in the simulator within the limit, and verification calls the run of the
shrunk plan a violation too, or unknown where its row says so. Where its row says that it is costly, what is lost
outside of the guarantee counts as well, if the same plan loses nothing with the rule on, which verification must say of
that run, too. Seconds are of one core's time, so that a busy machine does not change the score. Prints a line per
mutant and, last, how many of them were found.
Where a row says that there is nothing to find, it is searched as well; such a mutant never counts as found.
"""

import argparse
import itertools
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Final

import msgspec

from laststand.emulator.core.promises import PromiseKind
from laststand.emulator.plan.plan import Plan
from laststand.emulator.simulator.profiles.profiles import profiles_of
from laststand.emulator.simulator.run.simulation import Simulation
from laststand.emulator.simulator.run.writer import write_run
from laststand.emulator.simulator.search.explorer import StopAt, SweepOptions, explore
from laststand.emulator.simulator.search.shrink import Goal, Shrunk, shrink
from laststand.emulator.verification.spark.session import SparkSessionStarter
from laststand.emulator.verification.verdict.report import Verdict
from laststand.emulator.verification.verify import verify_runs
from tests.simulation.mutants import Costly, Harmless, Lethal, Mutant, Row, mutants
from tests.simulation.zookeeper_mutants import ROWS, zookeeper_mutants

LENGTH_MAX: Final = 15
"""Of a shrunk plan."""

_LOSES_ANYWAY: Final = "zk-power-losses"
"""The last replica standing leads with whatever it holds, in every era that it is for."""

_NOT_ENOUGH: Final = frozenset({"D15"})
"""Here whatever was committed must not be cut off; to verification it counts once it was acknowledged."""


class Attempt(msgspec.Struct, kw_only=True):
    """The hunt for one mutant, and its outcome.

    Attributes:
        mutant: which.
        row: what is expected of it.
        schedules: explored.
        seconds: of processor time, until it was found or given up.
        shrunk: the plan that shows it.
        run: where its run was written.
        run_with_rule: where the run of the same plan with the rule on was written, if that must lose nothing.
        is_verified: whether verification says of these runs what it must.
    """

    mutant: Mutant
    row: Row
    schedules: int
    seconds: float
    shrunk: Shrunk | None = None
    run: Path | None = None
    run_with_rule: Path | None = None
    is_verified: bool = False

    @property
    def is_found(self) -> bool:
        """True if both the simulator and verification saw it, in a plan that a person can read."""
        is_hunted = not isinstance(self.row, Harmless)
        return is_hunted and self.shrunk is not None and self.is_verified and self.shrunk.plan.length <= LENGTH_MAX

    @property
    def is_as_expected(self) -> bool:
        """True if it was found and its row says that it can be, or if neither is so."""
        return self.shrunk is None if isinstance(self.row, Harmless) else self.is_found

    def line(self) -> str:
        """Returns the mutant's line."""
        name = f"{'='.join(self.mutant):<36} {self.row.scenario:<4}"
        effort = f"{self.schedules} schedules, {self.seconds:.1f} s"
        if self.shrunk is not None:
            verified = "verified" if self.is_verified else "NOT VERIFIED"
            if self.is_verified and isinstance(self.row, Lethal) and self.row.verdict is Verdict.UNKNOWN:
                verified = "which verification cannot tell"
            check_id = self.shrunk.finding.check_id
            beyond = ", outside of the guarantee" if isinstance(self.row, Costly) else ""
            if isinstance(self.row, Harmless):
                beyond = ", THOUGH NOTHING SHOULD BE"
            return f"{name} {check_id:<4} {effort}, length {self.shrunk.plan.length}, {verified}{beyond}"
        if not isinstance(self.row, Harmless):
            return f"{name} NOT FOUND in {effort}"
        if self.row.evidence is not None:
            return f"{name} nothing lost in {effort}, shown by {self.row.evidence}"
        return f"{name} nothing lost in {effort}, argued only: {self.row.why}"


def with_every_rule(plan: Plan) -> Plan:
    """Returns the plan with the mutant's rule on, which is the last of its switches."""
    return msgspec.structs.replace(plan, switches=plan.switches[:-1])


def loses_nothing_with_every_rule(plan: Plan) -> bool:
    """Returns whether no outcome check fires, within the guarantee or not, where the mutant's rule is on."""
    simulation = Simulation(with_every_rule(plan))
    simulation.play_plan()
    return not any(alarm.kind is PromiseKind.OUTCOME for alarm in simulation.oracle.alarms)


def hunt(mutant: Mutant, row: Row, *, limit_s: float, directory: Path) -> Attempt:
    """Explores until an outcome check fires, shrinks what led there, and writes its run."""
    options = SweepOptions(era=row.era, switches=(*row.beside, mutant), stop_at=StopAt.OUTCOME)
    is_costly = isinstance(row, Costly)
    profiles = row.profiles or _harmless_profiles(row.era)
    options = msgspec.structs.replace(options, profiles=profiles)
    started = time.process_time()
    for seed in itertools.count():
        schedule = explore(seed, options)
        attempt = Attempt(mutant=mutant, row=row, schedules=seed + 1, seconds=time.process_time() - started)
        alarms = schedule.outcome.alarms if is_costly else schedule.outcome.findings
        seen = (alarm.check_id for alarm in alarms if alarm.kind is PromiseKind.OUTCOME)
        check_id = next((each for each in seen if each not in _NOT_ENOUGH), None)
        if check_id is not None:
            goal = Goal(kind=PromiseKind.OUTCOME, check_id=check_id, unless=_NOT_ENOUGH, is_beyond=is_costly)
            is_allowed = _always if isinstance(row, Lethal) else loses_nothing_with_every_rule
            attempt.shrunk = shrink(schedule.plan, goal, is_allowed=is_allowed)
        if attempt.shrunk is not None:
            _write_runs(attempt, attempt.shrunk.plan, directory)
        if attempt.shrunk is not None or attempt.seconds >= limit_s:
            return attempt
    raise AssertionError("there is always a next seed")


def _harmless_profiles(era: str) -> tuple[str, ...]:
    """Returns the profiles in which an era loses nothing with all of its rules on."""
    return tuple(name for name in profiles_of(era) if name != _LOSES_ANYWAY)


def _always(_: Plan) -> bool:
    return True


def _write_runs(attempt: Attempt, plan: Plan, directory: Path) -> None:
    name = "=".join(attempt.mutant)
    attempt.run = directory / name
    write_run(plan, attempt.run, name=name)
    if isinstance(attempt.row, Costly):
        attempt.run_with_rule = directory / f"{name}-with-rule"
        write_run(with_every_rule(plan), attempt.run_with_rule, name=f"{name} with the rule")


def _verify(attempts: Sequence[Attempt], directory: Path) -> None:
    """Verifies all runs in one Spark job."""
    runs = [run for attempt in attempts for run in (attempt.run, attempt.run_with_rule) if run is not None]
    if not runs:
        return
    with SparkSessionStarter(log_path=directory / "spark.log") as spark:
        verdicts = dict(zip(runs, (report.verdict for report in verify_runs(runs, spark=spark)), strict=True))
    for attempt in attempts:
        if attempt.run is not None:
            is_saved = attempt.run_with_rule is None or verdicts[attempt.run_with_rule] is Verdict.VALID
            expected = attempt.row.verdict if isinstance(attempt.row, Lethal) else Verdict.VIOLATION
            attempt.is_verified = verdicts[attempt.run] is expected and is_saved


def main() -> int:
    """Hunts every mutant, then verifies the runs of all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for each mutant")
    parser.add_argument("--only", action="append", metavar="SWITCH=RULE", help="this mutant; may be repeated")
    options = parser.parse_args()
    known = (*mutants(), *zookeeper_mutants())
    missing = [mutant for mutant in known if mutant not in ROWS]
    if missing:
        sys.stdout.write(f"no row in tests/simulation/*mutants.py: {', '.join(map('='.join, missing))}\n")
        return 1
    chosen = [mutant for mutant in known if options.only is None or "=".join(mutant) in options.only]
    with tempfile.TemporaryDirectory(prefix="laststand-mutation-") as directory:
        with ProcessPoolExecutor() as pool:
            hunts = [
                pool.submit(hunt, each, ROWS[each], limit_s=options.limit, directory=Path(directory)) for each in chosen
            ]
            attempts = [each.result() for each in hunts]
        _verify(attempts, Path(directory))
    for attempt in attempts:
        sys.stdout.write(attempt.line() + "\n")
    found = sum(attempt.is_found for attempt in attempts)
    harmless = [attempt.row for attempt in attempts if isinstance(attempt.row, Harmless)]
    shown = sum(row.evidence is not None for row in harmless)
    sys.stdout.write(
        f"not found as nothing is lost without them: {shown} that a plan shows to make a difference, "
        f"{len(harmless) - shown} that are argued only\n{found} of {len(attempts)} found, "
        f"{sum(not attempt.is_as_expected for attempt in attempts)} not as their rows say\n"
    )
    return 0 if all(attempt.is_as_expected for attempt in attempts) else 1


if __name__ == "__main__":
    sys.exit(main())
