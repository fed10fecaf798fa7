"""Plans that the simulator finds and shrinks here lose the same records on real processes.

The plans are not kept: each run of this test looks for them, with a rule switched off. Not every plan
that breaks a promise can be played with barriers (``laststand.chaos.plans``), so those that cannot are passed over.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from laststand.chaos.campaign import play_runs
from laststand.chaos.plans.lost_records import RecordName, lost_records_of
from laststand.chaos.plans.scenario_of_plan import scenario_of, settled_or_missing
from laststand.chaos.plans.settle_times import SettledPlan
from laststand.chaos.play.run_directory import create_run_directory
from laststand.chaos.play.run_order import RunOrder
from laststand.chaos.scenario.scenario_file import read_scenario
from laststand.emulator.cluster.toxiproxy_build import find_toxiproxy
from laststand.emulator.plan.drivers import DriverName
from laststand.emulator.plan.plan import Plan
from laststand.emulator.simulator.run.writer import write_run
from laststand.emulator.simulator.search.explorer import StopAt, SweepOptions, explore
from laststand.emulator.simulator.search.shrink import goal_of, shrink
from laststand.emulator.verification.rules.guarantee import Guarantee
from laststand.emulator.verification.verdict.report import Verdict, VerdictReport
from laststand.emulator.verification.verify import verify_runs

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]


class Search(NamedTuple):
    """A rule to switch off, how many plans to find then, in which profiles, and from which seed on."""

    switch: tuple[str, str]
    plans: int
    profiles: tuple[str, ...]
    first_seed: int


SEARCHES: Final = (
    Search(("unclean_detection", "off"), 1, ("last-standing", "partitions"), 40),
    Search(("unclean_detection", "off"), 1, ("last-standing", "partitions"), 65),
    Search(("min_isr_per_partition", "off"), 1, ("reassignment", "administrator"), 12),
)
"""Each begins near a plan that can be played with barriers, in which no client has to have old metadata."""

SEEDS: Final = 1_000


class Found(NamedTuple):
    """A shrunk plan, and the same with patience."""

    switch: tuple[str, str]
    seed: int
    plan: Plan
    settled: SettledPlan

    @property
    def name(self) -> str:
        return f"{self.switch[0]}-{self.seed}"


class Replayed(NamedTuple):
    """The outcome of one plan, in the simulator and on processes."""

    found: Found
    simulated: VerdictReport
    real: VerdictReport
    simulated_losses: frozenset[RecordName]
    real_losses: frozenset[RecordName]


def plans_that_lose_records(search: Search) -> Iterator[Found]:
    options = SweepOptions(switches=(search.switch,), profiles=search.profiles, stop_at=StopAt.OUTCOME)
    for seed in range(search.first_seed, search.first_seed + SEEDS):
        schedule = explore(seed, options)
        if not any(finding.check_id == "D1" for finding in schedule.outcome.findings):
            continue
        shrunk = shrink(schedule.plan, goal_of(schedule.outcome.findings))
        if shrunk is None:
            continue
        settled = settled_or_missing(shrunk.plan)
        if isinstance(settled, SettledPlan) and settled.result.lost:
            yield Found(switch=search.switch, seed=seed, plan=shrunk.plan, settled=settled)


def order_of(found: Found, store: Path) -> RunOrder:
    scenario = read_scenario(Path(f"{found.name}.yaml"), scenario_of(found.settled, name=f"replayed/{found.name}"))
    return RunOrder(
        scenario=scenario,
        directory=create_run_directory(store, scenario, now=datetime.now(UTC)),
        era=found.plan.era,
        switches=found.plan.rules(),
        properties=scenario.properties,
        seed=found.seed,
        toxiproxy=find_toxiproxy(),
        driver=DriverName.PROCESS,
    )


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Replayed, ...]:
    store = tmp_path_factory.mktemp("replayed")
    found = [plan for search in SEARCHES for plan in islice(plans_that_lose_records(search), search.plans)]
    simulated = [store / f"simulated-{each.name}" for each in found]
    for each, directory in zip(found, simulated, strict=True):
        write_run(each.plan, directory, name=each.name)
    orders = [order_of(each, store / "store") for each in found]
    play_runs(orders, on_status=lambda _status: None)
    real = [order.directory for order in orders]
    reports = verify_runs((*simulated, *real), spark=None)
    return tuple(
        Replayed(each, reports[index], reports[len(found) + index], lost_records_of(there), lost_records_of(here))
        for index, (each, there, here) in enumerate(zip(found, simulated, real, strict=True))
    )


def test_three_plans_are_found_from_different_seeds_and_two_switches(replayed: tuple[Replayed, ...]) -> None:
    assert len({(each.found.switch, each.found.seed) for each in replayed}) == 3
    assert {each.found.switch for each in replayed} == {search.switch for search in SEARCHES}
    assert all(each.found.plan.length <= 15 for each in replayed)


def test_processes_come_to_the_same_verdict(replayed: tuple[Replayed, ...]) -> None:
    for each in replayed:
        assert each.real.unknown_reasons == (), each.found.name
        for report in (each.simulated, each.real):
            assert (report.verdict, report.guarantee) == (Verdict.VIOLATION, Guarantee.BROKEN), each.found.name


def test_processes_lose_the_same_records(replayed: tuple[Replayed, ...]) -> None:
    for each in replayed:
        assert each.real_losses == each.simulated_losses == each.found.settled.result.lost, each.found.name
        assert each.real.lost_records == each.simulated.lost_records == len(each.real_losses) > 0, each.found.name
