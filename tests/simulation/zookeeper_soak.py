"""Many schedules of each ZooKeeper era, and why each finding is what the era's release does: ``make zookeeper-soak``.

A finding is explained by a known failure if it is a loss, as all of these failures are, and the same plan finds nothing
once that failure is prevented: by the rules of a later release, by a kill in place of a loss of power or of a disk, or
without what an administrator asks for. Prints a line per era, and one per finding that no known
failure explains, nor two of them together; such a finding makes the exit code 1.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import combinations
from types import MappingProxyType
from typing import Final

import msgspec

from laststand.emulator.core.promises import PROMISES, PromiseKind
from laststand.emulator.core.zookeeper.inter_broker_protocol import PROPERTY
from laststand.emulator.core.zookeeper.rules import ZOOKEEPER_ERAS
from laststand.emulator.plan import actions
from laststand.emulator.plan.plan import Plan
from laststand.emulator.simulator.profiles.profiles import profiles_of
from laststand.emulator.simulator.run.simulation import Simulation
from laststand.emulator.simulator.search.explorer import SweepOptions, explore

Prevention = Callable[[Plan], Plan]
"""Returns the plan as it is where one failure cannot happen."""

_OF_A_LOSS: Final = frozenset(
    check_id
    for check_id, promise in PROMISES.items()
    if promise.kind in (PromiseKind.OUTCOME, PromiseKind.CANDIDATE) and not check_id.startswith("M")
) | {"L6"}
"""Checks of what users see and of what a candidate holds; those of metadata are of a rule. L6 finds copies that differ
in the end, as those do of which one has lost something."""

_CHUNK: Final = 10
"""Seeds that a process takes at a time."""


class Explained(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule with findings.

    Attributes:
        seed: of the schedule.
        profile: from which it was drawn.
        checks: that fired.
        failures: stories of docs/eras-zookeeper.md without which nothing is found; empty if none explains it.
    """

    seed: int
    profile: str
    checks: tuple[str, ...]
    failures: tuple[str, ...]


def _with_switches(*switches: tuple[str, str]) -> Prevention:
    return lambda plan: msgspec.structs.replace(plan, switches=(*plan.switches, *switches))


def _without_power_losses(plan: Plan) -> Plan:
    return plan.with_actions(tuple(_with_page_cache(action) for action in plan.actions))


def _with_page_cache(action: actions.Action) -> actions.Action:
    match action:
        case actions.PowerLoss(nodes=nodes):
            return actions.Kill(nodes=nodes)
        case actions.CrashWithin():
            return msgspec.structs.replace(action, loss=None)
        case _:
            return action


def _with_old_disks(plan: Plan) -> Plan:
    return plan.with_actions(
        tuple(
            actions.Kill(nodes=action.nodes) if isinstance(action, actions.ReplaceDisk) else action
            for action in plan.actions
        )
    )


def _without_reassignments(plan: Plan) -> Plan:
    return plan.with_actions(
        tuple(
            action for action in plan.actions if not isinstance(action, actions.Reassign | actions.CancelReassignment)
        )
    )


PREVENTIONS: Final[Mapping[str, Prevention]] = MappingProxyType(
    {
        "Z05": _with_switches(("maximal_isr", "on"), ("isr_write_unknown", "pending")),
        "Z11": _with_switches(("stop_replica_epoch", "not_lower"), (PROPERTY, "2.6")),
        "Z17": _without_power_losses,
        "Z18": _with_old_disks,
        "Z27": _with_switches(("alter_isr_checks", "2.7"), ("maximal_isr", "on"), (PROPERTY, "3.1")),
        "Z28": _without_reassignments,
    }
)
"""Ways to prevent each failure that an era may have. That of Z18 prevents S10, too. That of Z27 prevents Z05, and that
of Z28 prevents Z27, so that they come after it."""

POSSIBLE: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "Z05": frozenset({"kafka-2.5-zk", "kafka-2.6-zk"}),
        "Z11": frozenset({"kafka-2.5-zk"}),
        "Z17": frozenset(ZOOKEEPER_ERAS),
        "Z18": frozenset(ZOOKEEPER_ERAS),
        "Z27": frozenset({"kafka-2.5-zk", "kafka-2.6-zk"}),
        "Z28": frozenset(ZOOKEEPER_ERAS),
    }
)
"""The eras in which a failure is possible."""


def explained(plan: Plan) -> tuple[str, ...]:
    """Returns the failures that explain a plan's findings: one, or two that happen in one schedule, or none.

    A rule that was broken, or a cluster that does not come to rest, is explained by none.
    """
    if not _found(plan) <= _OF_A_LOSS:
        return ()
    possible = [failure for failure in PREVENTIONS if plan.era in POSSIBLE[failure]]
    for failures in (*combinations(possible, 1), *combinations(possible, 2)):
        prevented = plan
        for failure in failures:
            prevented = PREVENTIONS[failure](prevented)
        if not _found(prevented):
            return failures
    return ()


def _found(plan: Plan) -> frozenset[str]:
    simulation = Simulation(plan)
    simulation.play_plan()
    return frozenset(finding.check_id for finding in simulation.findings())


def explored(seed: int, era: str) -> Explained | None:
    """Plays one schedule, and explains what it finds; ``None`` if that is nothing."""
    schedule = explore(seed, SweepOptions(era=era, profiles=profiles_of(era)))
    if not schedule.outcome.findings:
        return None
    checks = sorted({finding.check_id for finding in schedule.outcome.findings})
    return Explained(seed=seed, profile=schedule.profile, checks=tuple(checks), failures=explained(schedule.plan))


def soak(era: str, seeds: Sequence[int], pool: ProcessPoolExecutor) -> Iterator[Explained]:
    """Yields the schedules of an era that found something, in the order of the seeds."""
    for result in pool.map(partial(explored, era=era), seeds, chunksize=_CHUNK):
        if result is not None:
            yield result


def main() -> int:
    """Explores the seeds of the command line."""
    parser = argparse.ArgumentParser(description="Explore ZooKeeper clusters, and explain each finding.")
    parser.add_argument("--seeds", metavar="A..B", default="1..10000", help="seeds to explore, both included")
    parser.add_argument("--era", action="append", choices=tuple(ZOOKEEPER_ERAS), help="one era; repeat for several")
    parser.add_argument("--jobs", type=int, default=1, help="number of processes")
    arguments = parser.parse_args()
    first, _, last = arguments.seeds.partition("..")
    seeds = range(int(first), int(last or first) + 1)
    unexplained = 0
    with ProcessPoolExecutor(arguments.jobs) as pool:
        for era in arguments.era or ZOOKEEPER_ERAS:
            counts: Counter[str] = Counter()
            for found in soak(era, seeds, pool):
                counts["+".join(found.failures) or "not explained"] += 1
                if not found.failures:
                    unexplained += 1
                    _tell(f"{era} --seed {found.seed}: {', '.join(found.checks)} ({found.profile})")
            told = ", ".join(f"{name} {count}" for name, count in sorted(counts.items())) or "nothing"
            _tell(f"{era:<13} {len(seeds)} schedules, {counts.total()} found: {told}")
    return int(unexplained > 0)


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
