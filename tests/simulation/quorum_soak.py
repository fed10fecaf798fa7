"""Many schedules of the quorum, and a hunt for each rule that is switched off: ``make quorum-soak``.

Prints a line per finding, a line per mutant, and what the schedules add up to. Seconds are of processor time. Exit
code 1 on a finding with all rules on, on a rule whose absence is not found within the limit, or on one that should lose
nothing and does.
"""

import argparse
import itertools
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import msgspec

from laststand.emulator.core.quorum_rules import QuorumRules
from laststand.emulator.simulator.quorum.oracle import QuorumCheck
from tests.simulation.quorum.schedule import QuorumOutcome, QuorumSchedule
from tests.simulation.quorum_mutants import QUORUM_MUTANTS, Harmless, Lethal, without

_CHUNK = 100
"""Seeds that a process takes at a time."""


class Hunt(msgspec.Struct, frozen=True, kw_only=True):
    """The search for one mutant.

    Attributes:
        rule: that was off.
        schedules: explored.
        seconds: of processor time.
        outcome: of the schedule that shows it; ``None`` if none did.
    """

    rule: str
    schedules: int
    seconds: float
    outcome: QuorumOutcome | None

    @property
    def is_as_expected(self) -> bool:
        """It was found, by a check that its row names; or there is nothing to find, and nothing was."""
        row = QUORUM_MUTANTS[self.rule]
        if isinstance(row, Harmless):
            return self.outcome is None
        return self.outcome is not None and any(finding.check in row.checks for finding in self.outcome.findings)

    def line(self) -> str:
        """Returns the mutant's line."""
        effort = f"{self.schedules} schedules, {self.seconds:.1f} s"
        wrong = "" if self.is_as_expected else "  NOT AS EXPECTED"
        if self.outcome is None:
            return f"{self.rule:<26} nothing found in {effort}{wrong}"
        checks = ", ".join(finding.check.value for finding in self.outcome.findings)
        return f"{self.rule:<26} {checks} in {effort}, seed {self.outcome.seed}{wrong}"


def hunt(rule: str, *, limit_s: float) -> Hunt:
    """Plays schedules without a rule until a check fires, or the time is over."""
    row = QUORUM_MUTANTS[rule]
    beside = row.beside if isinstance(row, Lethal) else None
    rules = without(rule) if beside is None else without(rule, beside)
    asked = row.checks if isinstance(row, Lethal) and beside is not None else frozenset[QuorumCheck]()
    started = time.process_time()
    for seed in itertools.count():
        outcome = QuorumSchedule(seed, rules, asked=asked).play()
        seconds = time.process_time() - started
        if outcome.findings or seconds >= limit_s:
            found = outcome if outcome.findings else None
            return Hunt(rule=rule, schedules=seed + 1, seconds=seconds, outcome=found)
    raise AssertionError("there is always a next seed")


def play_all(seeds: Iterable[int]) -> list[QuorumOutcome]:
    """Plays schedules with all rules on."""
    return [QuorumSchedule(seed, QuorumRules()).play() for seed in seeds]


def main() -> int:
    """Plays and hunts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--schedules", type=int, default=10_000, help="with all rules on")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for each mutant")
    parser.add_argument("--jobs", type=int, default=None, help="processes")
    parser.add_argument("--only", action="append", metavar="RULE", help="this mutant; may be repeated")
    options = parser.parse_args()
    chunks = [range(first, min(first + _CHUNK, options.schedules)) for first in range(0, options.schedules, _CHUNK)]
    with ProcessPoolExecutor(options.jobs) as pool:
        hunts = list(pool.map(partial(hunt, limit_s=options.limit), options.only or QUORUM_MUTANTS))
        outcomes = [outcome for chunk in pool.map(play_all, chunks) for outcome in chunk]
    for each in hunts:
        sys.stdout.write(each.line() + "\n")
    found = [outcome for outcome in outcomes if outcome.findings]
    for outcome in found:
        sys.stdout.write(f"seed {outcome.seed}: {'; '.join(each.describe() for each in outcome.findings)}\n")
    commits = sum(outcome.commits for outcome in outcomes)
    elections = sum(outcome.elections for outcome in outcomes)
    sys.stdout.write(
        f"{len(outcomes)} schedules, {elections} leaders, {commits} records committed, {len(found)} findings; "
        f"{sum(not each.is_as_expected for each in hunts)} of {len(hunts)} mutants not as expected\n"
    )
    return 1 if found or not all(each.is_as_expected for each in hunts) else 0


if __name__ == "__main__":
    sys.exit(main())
