"""The mutation score: each rule switched off must be found, and verified from the event log: ``make mutation``.

A mutant is found when an outcome check fires in the simulator within the limit, and verification calls the run of the
shrunk plan a violation too. Prints a line per mutant and, last, how many of them were found.
"""

import argparse
import itertools
import sys
import tempfile
import time
from enum import Enum
from pathlib import Path
from typing import Final

import msgspec

from emulator.core.switches import Switches
from emulator.simulator.explorer import Ambition, Orders
from emulator.simulator.oracle.finding import CheckKind
from emulator.simulator.run_writer import write_run
from emulator.simulator.shrink import Goal, Shrunk, shrink
from emulator.simulator.sweep import sweep
from emulator.verification.session import SparkSessionStarter
from emulator.verification.verdict import Verdict
from emulator.verification.verify import verify_runs

SCENARIOS: Final = {
    ("elr", "off"): "S13",
    ("hw_requires_min_isr", "off"): "S14",
    ("unclean_detection", "off"): "S16",
    ("maximal_isr", "proposed"): "S07",
    ("maximal_isr", "committed_only"): "S08",
    ("truncation", "kip101"): "S03",
    ("truncation", "high_watermark"): "S01",
    ("ap_partition_epoch_check", "off"): "S09",
    ("ap_broker_epoch_check", "off"): "S10",
}


class Attempt(msgspec.Struct, kw_only=True):
    """What became of one mutant."""

    mutant: tuple[str, str]
    schedules: int
    seconds: float
    shrunk: Shrunk | None = None
    run: Path | None = None
    is_verified: bool = False

    @property
    def is_found(self) -> bool:
        """Whether both the simulator and verification saw it."""
        return self.shrunk is not None and self.is_verified

    def line(self) -> str:
        """Returns the mutant's line."""
        name = "=".join(self.mutant)
        scenario = SCENARIOS.get(self.mutant, "-")
        if self.shrunk is None:
            return f"{name:<32} {scenario:<4} not found in {self.schedules} schedules, {self.seconds:.1f} s"
        verified = "verified" if self.is_verified else "NOT VERIFIED"
        return (
            f"{name:<32} {scenario:<4} {self.shrunk.finding.check_id:<4} {self.schedules} schedules, "
            f"{self.seconds:.1f} s, length {self.shrunk.plan.length}, {verified}"
        )


def mutants() -> tuple[tuple[str, str], ...]:
    """Returns every rule that is not the default one, by switch."""
    found: list[tuple[str, str]] = []
    for name in Switches.__struct_fields__:
        default = getattr(Switches(), name)
        if isinstance(default, Enum):
            found += [(name, rule.value) for rule in type(default) if rule is not default]
        elif default:
            found.append((name, "off"))
        else:
            found.append((name, "on"))
    return tuple(found)


def hunt(mutant: tuple[str, str], *, limit_s: float, directory: Path) -> Attempt:
    """Explores until an outcome check fires, shrinks what led there, and writes its run."""
    started = time.monotonic()
    orders = Orders(switches=(mutant,), ambition=Ambition.OUTCOME)
    schedules = 0
    for first in itertools.count(step=10):
        report = sweep(iter(range(first, first + 10)), orders)
        schedules += report.schedules
        seconds = time.monotonic() - started
        for schedule in report.findings:
            outcome = next((f for f in schedule.outcome.findings if f.kind is CheckKind.OUTCOME), None)
            if outcome is None:
                continue
            shrunk = shrink(schedule.plan, Goal(kind=outcome.kind, check_id=outcome.check_id), limit_s=limit_s)
            if shrunk is not None:
                run = directory / "-".join(mutant)
                write_run(shrunk.plan, run, name="=".join(mutant))
                return Attempt(mutant=mutant, schedules=schedules, seconds=seconds, shrunk=shrunk, run=run)
        if seconds >= limit_s:
            return Attempt(mutant=mutant, schedules=schedules, seconds=seconds)
    raise AssertionError("there is always a next seed")


def main() -> int:
    """Hunts every mutant, then verifies all runs in one Spark job."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for each mutant")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="laststand-mutation-") as directory:
        attempts = [hunt(mutant, limit_s=options.limit, directory=Path(directory)) for mutant in mutants()]
        written = [attempt for attempt in attempts if attempt.run is not None]
        with SparkSessionStarter(log_path=Path(directory) / "spark.log") as spark:
            reports = verify_runs([attempt.run for attempt in written if attempt.run is not None], spark=spark)
        for attempt, report in zip(written, reports, strict=True):
            attempt.is_verified = report.verdict is Verdict.VIOLATION
    for attempt in attempts:
        sys.stdout.write(attempt.line() + "\n")
    found = sum(attempt.is_found for attempt in attempts)
    sys.stdout.write(f"{found} of {len(attempts)} found\n")
    return 0 if found == len(attempts) else 1


if __name__ == "__main__":
    sys.exit(main())
