"""Compares the independent judge with the two oracles.

    python -m tests.independent.compare --seeds 1..1000 --era kip-966
    python -m tests.independent.compare --runs store

Each schedule is drawn, played and written as in ``tests.verification.agreement``; then three judges judge it. Runs in
directories, such as those that ``laststand run chaos/scenarios`` leaves, are judged by two. The only module here that
imports the project. Exits with 1 at a disagreement.
"""

import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from laststand.emulator.plan.plan import Plan
from laststand.emulator.simulator.run.writer import write_run
from laststand.emulator.simulator.search.explorer import SweepOptions, explore
from laststand.emulator.verification.judge import judge as verify
from laststand.emulator.verification.reading.run_directory import find_runs, open_run_directory
from laststand.emulator.verification.reading.run_plan import plan_run
from laststand.emulator.verification.verdict.report import CheckStatus, VerdictReport
from tests.independent.checks import CHECKS
from tests.independent.judge import Verdict, judge
from tests.verification.agreement import Compared, compare_eras, options_parser


def differences(mine: Verdict, report: VerdictReport) -> Iterator[str]:
    """Yields what the independent judge says otherwise than verification."""
    if mine.lost_records != report.lost_records:
        yield f"{mine.lost_records} records lost here, {report.lost_records} by verify"
    elif mine.guarantee != (None if report.guarantee is None else report.guarantee.value):
        yield f"guarantee {mine.guarantee} here, {report.guarantee} by verify"
    if mine.verdict == "violation" and report.verdict.value == "valid":
        yield "a violation here, valid by verify"
    for check in report.checks:
        if check.check_id in CHECKS:
            found = mine.findings.get(check.check_id)
            if found and check.status is not CheckStatus.VIOLATED:
                yield f"{check.check_id} is found here alone, {check.status.value} by verify: {found[0]}"
            elif not found and check.status is CheckStatus.VIOLATED:
                yield f"{check.check_id} is found by verify alone: {check.examples[0]}"


def compared(plan: Plan) -> tuple[str, tuple[str, ...]]:
    """Plays a plan and has it judged; returns the independent verdict, and disagreements."""
    with tempfile.TemporaryDirectory(prefix="independent-") as parent:
        directory = Path(parent, plan.era)
        simulated = write_run(plan, directory, name=directory.name).judgement()
        report = verify(plan_run(0, open_run_directory(directory))).report
        mine = judge(directory)
    found = list(differences(mine, report))
    if mine.lost_records != simulated.lost_records:
        found.append(f"{mine.lost_records} records lost here, {simulated.lost_records} by the simulator's oracle")
    return mine.verdict, tuple(found)


def compare(seed: int, era: str, profiles: tuple[str, ...] = ()) -> Compared:
    """Draws a schedule, of one of the profiles if any is named, and compares."""
    schedule = explore(seed, SweepOptions(era=era, profiles=profiles))
    verdict, disagreements = compared(schedule.plan)
    return Compared(seed=seed, profile=schedule.profile, verdict=verdict, disagreements=disagreements)


def compare_runs(parents: Sequence[Path]) -> int:
    """Prints what the judges of recorded runs disagree on; returns the exit code."""
    runs = [run for parent in parents for run in find_runs(parent)]
    verdicts: Counter[str] = Counter()
    disagreeing = 0
    for run in runs:
        mine = judge(run)
        found = list(differences(mine, verify(plan_run(0, open_run_directory(run))).report))
        verdicts[mine.verdict] += 1
        disagreeing += bool(found)
        sys.stdout.writelines(f"{run}: {sentence}\n" for sentence in found)
    counts = ", ".join(f"{verdicts[verdict]} {verdict}" for verdict in ("valid", "violation", "unknown"))
    sys.stdout.write(f"{len(runs)} runs ({counts}), {disagreeing} disagreements\n")
    return 1 if disagreeing or not runs else 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Compares in each era that is asked for; returns the exit code."""
    parser = options_parser(__doc__)
    parser.add_argument("--profile", action="append", default=[], help="of schedules; may be repeated")
    parser.add_argument("--runs", type=Path, nargs="+", help="directories of runs, instead of seeds")
    options = parser.parse_args(arguments)
    if options.runs:
        return compare_runs(options.runs)
    return compare_eras(options, lambda era: partial(compare, era=era, profiles=tuple(options.profile)))


if __name__ == "__main__":
    sys.exit(main())
