"""Compares the two judges of a run, over many schedules and eras: ``make agreement SEEDS=1..1000 ERA=kip-966``.

The simulator's oracle judges a run while it goes on, ``laststand.emulator.verification`` by what it left on disk. Each
schedule is drawn, played, written and judged by both, in one process and without Spark. They agree if verdict,
guarantee and number of lost records are the same, and if neither finds a promise broken that the other has to find
broken, too.

Prints each disagreement, and closes each era with counts. The exit code is 1 if there was a disagreement.
"""

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from laststand.emulator.core.eras import ALL_ERAS
from laststand.emulator.core.promises import PROMISES, JudgedBy, PromiseKind
from laststand.emulator.plan.plan import Plan
from laststand.emulator.simulator.oracle.finding import Guarantee
from laststand.emulator.simulator.oracle.oracle import Oracle
from laststand.emulator.simulator.profiles.profiles import profiles_of
from laststand.emulator.simulator.run.judgement import Judgement
from laststand.emulator.simulator.run.writer import write_run
from laststand.emulator.simulator.search.explorer import SweepOptions, explore
from laststand.emulator.verification.facts.losses import LossClass
from laststand.emulator.verification.judge import judge
from laststand.emulator.verification.reading.run_directory import open_run_directory
from laststand.emulator.verification.reading.run_plan import plan_run
from laststand.emulator.verification.verdict.report import CheckStatus, VerdictReport

SHARED: Final = tuple(check_id for check_id, promise in PROMISES.items() if promise.judged_by is JudgedBy.BOTH)

TRANSIENT: Final = frozenset({"D3", "D6", "D8", "D9", "D15", "D16", "H4", "L1", "L2", "L3", "L4", "L6", "Q4"})
"""Checks of what only an observer of every step sees: states between two events (D3, D8, D9, H4), a cluster that never
settles, of which verification says nothing (L1 to L6), logs that disagree for a time (D6; verification compares final
ones), a truncation in the very epoch of the commit (D15; nothing orders the two), and a batch that a consumer is given
below the high watermark of a broker whose log is not what was committed (D16), and what a controller knew to be
committed before it followed another log (Q4; verification compares final ones)."""

_UNAVAILABLE: Final = frozenset({LossClass.ONLY_UNELECTABLE})
"""Records of a partition that no replica may lead: lost for verification, an excuse in the simulator."""

_CHUNK: Final = 10
"""Seeds that a process takes at a time."""


class Played(msgspec.Struct, frozen=True, kw_only=True):
    """A run: what the simulator's oracle takes to be promised in it, and what it found, by check."""

    promised: frozenset[str]
    found: Mapping[str, frozenset[Guarantee]]


def found_by(oracle: Oracle) -> dict[str, frozenset[Guarantee]]:
    """Returns by check whether what an oracle found, and a run shows, was within the guarantee."""
    return {
        check_id: frozenset(
            alarm.guarantee for alarm in oracle.alarms if alarm.check_id == check_id and alarm.leaves_evidence
        )
        for check_id in {alarm.check_id for alarm in oracle.alarms}
    }


def different_findings(played: Played, report: VerdictReport) -> Iterator[str]:
    """Yields the promises that one oracle found broken and the other did not, though it had to."""
    for check in report.checks:
        if check.check_id not in SHARED:
            continue
        promised = check.check_id in played.promised
        if promised is (check.status is CheckStatus.NOT_PROMISED):
            yield f"{check.check_id} is promised: {promised}, and verification says {check.status.value}"
        if not promised or is_beyond_comparison(check.check_id, played, report):
            continue
        found = played.found.get(check.check_id, frozenset())
        is_violated = check.status is CheckStatus.VIOLATED
        if is_violated and check.check_id not in played.found:
            yield f"{check.check_id} is found by verification alone: {check.examples[0]}"
        elif Guarantee.HOLDS in found and not is_violated and check.check_id not in TRANSIENT:
            yield f"{check.check_id} is found by the simulator's oracle alone; verification says {check.status.value}"


def is_beyond_comparison(check_id: str, played: Played, report: VerdictReport) -> bool:
    """Returns whether the oracles need not answer alike about a check."""
    if check_id == "D1" and {loss.loss_class for loss in report.losses} == _UNAVAILABLE:
        return True
    # After an unclean election that nobody accepted the guarantee holds for the simulator's oracle (S42). Verification
    # asks D2 of clean elections only; what such an election lost, both find by D1.
    if check_id == "D2" and "D1" in played.found:
        return True
    # Logs that parted below what was committed (S35, S36): the simulator's oracle sees two batches of one offset and
    # epoch (D7), of which one is gone in the end, and what one of two leaders has twice (D12); verification sees that
    # the final logs are no copies (D6, L6).
    if "D7" in played.found and check_id in {"D6", "D7", "D12", "L6"}:
        return True
    # Where controllers have forgotten metadata, an offset stands for two records, which is what M14 says of others.
    if "Q3" in played.found and check_id == "M14":
        return True
    # Where a log is used for another topic than its own (S27), whose records it holds is a matter of definition.
    return "M15" in played.found and (PROMISES[check_id].kind is PromiseKind.OUTCOME or check_id == "L6")


def simulated(judgement: Judgement) -> tuple[str, str | None, int]:
    """Returns what the simulator's oracle says of a run: verdict, guarantee and number of lost records."""
    guarantee = None if judgement.guarantee is None else judgement.guarantee.value
    return judgement.verdict.value, guarantee, judgement.lost_records


def verified(report: VerdictReport) -> tuple[str, str | None, int]:
    """Returns the same of verification."""
    guarantee = None if report.guarantee is None else report.guarantee.value
    return report.verdict.value, guarantee, report.lost_records


def different_verdicts(judgement: Judgement, report: VerdictReport) -> Iterator[str]:
    """Yields a sentence if the two verdicts differ."""
    if simulated(judgement) != verified(report):
        yield f"simulate says {judgement}, verify {verified(report)} {report.unknown_reasons[:1]}"


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """One schedule, and what its judges disagree on.

    Attributes:
        seed: of the schedule.
        profile: from which it was drawn.
        verdict: of the judge that others are compared with.
        disagreements: in words.
    """

    seed: int
    profile: str
    verdict: str
    disagreements: tuple[str, ...]


def compare(seed: int, options: SweepOptions) -> Compared:
    """Draws and plays a schedule, and has both judges judge it."""
    schedule = explore(seed, options)
    verdict, disagreements = judged_twice(schedule.plan)
    return Compared(seed=seed, profile=schedule.profile, verdict=verdict, disagreements=disagreements)


def judged_twice(plan: Plan) -> tuple[str, tuple[str, ...]]:
    """Plays a plan, and has both judges judge it; returns the verdict of the simulator's oracle, and disagreements."""
    with tempfile.TemporaryDirectory(prefix="agreement-") as parent:
        directory = Path(parent, plan.era)
        simulation = write_run(plan, directory, name=directory.name)
        report = judge(plan_run(0, open_run_directory(directory))).report
    judgement = simulation.judgement()
    found = found_by(simulation.oracle)
    if judgement.lost_records:  # what nobody holds where nobody leads is lost, and no leader was there to lack it
        found.setdefault("D1", frozenset())
    played = Played(promised=simulation.oracle.promised(), found=found)
    disagreements = (*different_verdicts(judgement, report), *different_findings(played, report))
    return judgement.verdict.value, disagreements


def main(arguments: Sequence[str] | None = None) -> int:
    """Compares the judges in each era that is asked for; returns the exit code."""
    parser = options_parser(__doc__)
    parser.add_argument("--profile", action="append", default=[], help="of schedules; may be repeated")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a rule or a property")
    options = parser.parse_args(arguments)
    settings = tuple(tuple(each.split("=", 1)) for each in options.set)

    def sweep(era: str) -> SweepOptions:
        return SweepOptions(
            era=era,
            switches=tuple(each for each in settings if "." not in each[0]),
            properties=tuple(each for each in settings if "." in each[0]),
            profiles=tuple(name for name in options.profile if name in profiles_of(era)),
        )

    return compare_eras(options, lambda era: partial(compare, options=sweep(era)))


def options_parser(description: str | None) -> argparse.ArgumentParser:
    """Returns a parser of what every comparison of judges is asked for: seeds, eras and processes."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="1..1000", help="A..B, both included")
    parser.add_argument("--era", action="append", choices=ALL_ERAS, help="all eras by default; may be repeated")
    parser.add_argument("--jobs", type=int, default=1)
    return parser


def compare_eras(options: argparse.Namespace, compare_in: Callable[[str], Callable[[int], Compared]]) -> int:
    """Prints disagreements as they are found, and counts by era; returns the exit code.

    Args:
        options: by ``options_parser``.
        compare_in: returns what compares the schedule of a seed in an era; other processes run it.
    """
    first, _, last = options.seeds.partition("..")
    seeds = range(int(first), int(last or first) + 1)
    disagreeing = 0
    with ProcessPoolExecutor(options.jobs) as pool:
        for era in options.era or ALL_ERAS:
            counts: Counter[str] = Counter()
            for compared in pool.map(compare_in(era), seeds, chunksize=_CHUNK):
                counts[compared.verdict] += 1
                counts["disagreements"] += bool(compared.disagreements)
                for sentence in compared.disagreements:
                    _print(f"{era} seed {compared.seed} ({compared.profile}): {sentence}")
            verdicts = ", ".join(f"{counts[verdict]} {verdict}" for verdict in ("valid", "violation", "unknown"))
            _print(f"{era}: {len(seeds)} runs ({verdicts}), {counts['disagreements']} disagreements")
            disagreeing += counts["disagreements"]
    return 1 if disagreeing else 0


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
