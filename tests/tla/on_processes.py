"""Plays plans of ``tests/tla/plans`` on processes, with their own waits: ``make soak``.

Prints a line per plan; the exit code is 1 if one that docs/tla/README.md says is lost there loses nothing.
"""

import argparse
import re
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from laststand.chaos.campaign import play_runs
from laststand.chaos.plans.scenario_of_plan import as_it_is_or_missing, scenario_of
from laststand.chaos.plans.settle_times import SettledPlan
from laststand.chaos.play.run_directory import create_run_directory
from laststand.chaos.play.run_order import RunOrder
from laststand.chaos.scenario.scenario_file import read_scenario
from laststand.emulator.cluster.toxiproxy_build import find_toxiproxy
from laststand.emulator.plan.drivers import DriverName
from laststand.emulator.plan.plan import parse_plan
from laststand.emulator.verification.verdict.report import CheckStatus, VerdictReport
from laststand.emulator.verification.verify import verify_runs
from tests.tla.plan_of_counterexample import LOSSES

PLANS: Final = Path(__file__).parent / "plans"

_README: Final = Path(__file__).parents[2] / "docs" / "tla" / "README.md"
_HEAD: Final = "| Plan | Lost in virtual time | Lost on processes |"


def rows() -> dict[str, tuple[str, str]]:
    """Returns what docs/tla/README.md says of each plan: what is lost in virtual time, and on processes."""
    lines = iter(_README.read_text(encoding="utf-8").split(_HEAD)[1].splitlines()[2:])
    said: dict[str, tuple[str, str]] = {}
    for line in lines:
        if not line:
            break
        name, virtual, real = (cell.strip() for cell in line.strip("|").split("|"))
        said[name.strip("`")] = (virtual, real)
    return said


def always_lost() -> tuple[str, ...]:
    """Returns the plans that lost something in each of their runs on processes."""
    return tuple(name for name, (_, real) in rows().items() if re.fullmatch(r"(\d+) of \1", real))


def play(name: str, store: Path) -> VerdictReport:
    """Plays a plan on processes, and judges the run."""
    plan = parse_plan((PLANS / f"{name}.txt").read_text(encoding="utf-8"))
    found = as_it_is_or_missing(plan)
    assert isinstance(found, SettledPlan), found
    text = scenario_of(found, name=f"replayed/{name}", keeps_waits=True)
    scenario = read_scenario(Path(f"{name}.yaml"), text)
    order = RunOrder(
        scenario=scenario,
        directory=create_run_directory(store, scenario, now=datetime.now(UTC)),
        era=plan.era,
        switches=plan.rules(),
        properties=scenario.properties,
        seed=1,
        toxiproxy=find_toxiproxy(),
        driver=DriverName.PROCESS,
    )
    play_runs([order], on_status=lambda _status: None)
    (report,) = verify_runs((order.directory,), spark=None)
    return report


def broken(report: VerdictReport) -> set[str]:
    """Returns the checks that see a loss."""
    return {check.check_id for check in report.checks if check.status is CheckStatus.VIOLATED} & LOSSES


def main(arguments: list[str]) -> int:
    """Plays plans; without names those that always lose something."""
    parser = argparse.ArgumentParser(prog="python -m tests.tla.on_processes", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="PLAN", help="of tests/tla/plans; all that always lose by default")
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--store", type=Path, help="leave the runs in this directory")
    options = parser.parse_args(arguments)
    failed = False
    with tempfile.TemporaryDirectory() as directory:
        for name in options.names or always_lost():
            for _ in range(options.times):
                report = play(name, options.store or Path(directory))
                lost = broken(report)
                what = f"breaks {', '.join(sorted(lost))}" if lost else f"LOSES NOTHING: {report.unknown_reasons[:1]}"
                sys.stdout.write(f"{name}: {report.verdict.value}, {what}\n")
                sys.stdout.flush()
                failed |= not lost
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
