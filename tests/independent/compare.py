"""Compares the independent judge with the two oracles.

    python -m tests.independent.compare --seeds 1..1000 --era kip-966

Each schedule is drawn, played and written as in ``tests.verification.agreement``; then three judges judge it. The only
module here that imports the project. Exits with 1 at a disagreement that no exemption of ``docs/independent-oracle.md``
names.
"""

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from laststand.emulator.core.eras import ALL_ERAS
from laststand.emulator.plan.plan import Plan
from laststand.emulator.simulator.run.writer import write_run
from laststand.emulator.simulator.search.explorer import SweepOptions, explore
from laststand.emulator.verification.judge import judge as verify
from laststand.emulator.verification.reading.run_directory import open_run_directory
from laststand.emulator.verification.reading.run_plan import plan_run
from laststand.emulator.verification.verdict.report import CheckStatus, VerdictReport
from tests.independent.checks import CHECKS
from tests.independent.judge import Verdict, judge


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


def compare(seed: int, era: str) -> tuple[int, str, tuple[str, ...]]:
    """Draws a schedule and compares; returns the seed beside the outcome."""
    plan = explore(seed, SweepOptions(era=era, switches=(), properties=(), profiles=())).plan
    return seed, *compared(plan)


def main(arguments: Sequence[str] | None = None) -> int:
    """Compares in each era that is asked for; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="1..1000", help="A..B, both included")
    parser.add_argument("--era", action="append", choices=ALL_ERAS, help="all eras by default; may be repeated")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args(arguments)
    first, _, last = options.seeds.partition("..")
    seeds = range(int(first), int(last or first) + 1)
    disagreeing = 0
    with ProcessPoolExecutor(options.jobs) as pool:
        for era in options.era or ALL_ERAS:
            counts: Counter[str] = Counter()
            for seed, verdict, sentences in pool.map(partial(compare, era=era), seeds, chunksize=5):
                counts[verdict] += 1
                counts["disagreements"] += bool(sentences)
                for sentence in sentences:
                    _print(f"{era} seed {seed}: {sentence}")
            verdicts = ", ".join(f"{counts[verdict]} {verdict}" for verdict in ("valid", "violation", "unknown"))
            _print(f"{era}: {len(seeds)} runs ({verdicts}), {counts['disagreements']} disagreements")
            disagreeing += counts["disagreements"]
    return 1 if disagreeing else 0


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
