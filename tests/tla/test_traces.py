"""Traces of runs: those that follow the rules are accepted, and each loss without a rule is rejected at an action."""

from pathlib import Path
from typing import Final

import msgspec
import pytest

from laststand.cli.main import cli
from laststand.emulator.core.errors import ConfigError
from laststand.emulator.core.switches import ERAS, switch_texts
from laststand.emulator.plan.plan import Plan, parse_plan
from laststand.emulator.report.shiviz import LoggedEvent
from laststand.emulator.report.tla import BOUNDS, RULES, NotSpecifiedError, partition_traces
from laststand.emulator.simulator.run.journal import Journal
from laststand.emulator.simulator.run.simulation import Simulation
from tests.tla.model_checker import SPECIFICATION, rules_of_the_specification
from tests.tla.models import Bounds
from tests.tla.simulated_runs import logged
from tests.tla.test_models import needs_tlc
from tests.tla.traces import Rejection, check_module, check_traces

REGRESSIONS: Final = Path(__file__).parents[1] / "simulation" / "regressions"
ALL_RULES: Final = switch_texts(ERAS["kip-966"])

REJECTED_AT: Final = {
    "s16-unclean-detection-off": "Register",
    "s14-hw-requires-min-isr-off": "AdvanceHighWatermark",
    "s08-maximal-isr-committed-only": "AdvanceHighWatermark",
    "s01-truncation-high-watermark": "Truncate",
    "s09-ap-partition-epoch-check-off": "Decide",
    "s10-ap-broker-epoch-check-off": "Decide",
    "s17-clear-elr-on-min-isr-change-off": "ChangeMinIsr",
    "s22-truncate-before-hw-off": "UpdateHighWatermark",
    "roles-of-the-process-before": "OpenLog",
    "s43-a-term-that-ended-unseen": "AdvanceHighWatermark",
    "s45-refusals-are-final-off": "Decide",
    "s38-answers-await-metadata-off": "AdvanceHighWatermark",
}
"""The action that does not allow what a plan without a rule leads to."""

REJECTED_PLANS_AT: Final = {
    "elr-off": "Fence",
    "maximal_isr-proposed": "AdvanceHighWatermark",
    "untouched_logs_stay_proven-off": "Register",
}
"""The same for counter-examples of TLC that have no other plan."""


def run_of(plan: Plan) -> tuple[LoggedEvent, ...]:
    journal = Journal()
    Simulation(plan, journal=journal).play_plan()
    return logged(journal)


def plan_in(file: Path) -> Plan:
    return parse_plan(file.read_text(encoding="utf-8"))


def test_constants_are_those_of_the_specification() -> None:
    assert set(RULES) == rules_of_the_specification()
    bounds = {field.encode_name for field in msgspec.structs.fields(Bounds)} - {"Brokers"}
    assert set(BOUNDS) == bounds


@needs_tlc
def test_runs_are_accepted_and_each_loss_is_rejected_at_its_action(tmp_path: Path) -> None:
    files = {REGRESSIONS / f"{name}.txt": action for name, action in REJECTED_AT.items()}
    files |= {SPECIFICATION.parents[2] / f"tests/tla/plans/{name}.txt": at for name, at in REJECTED_PLANS_AT.items()}
    losing = [run_of(plan_in(file)) for file in files]
    sound = run_of(msgspec.structs.replace(plan_in(REGRESSIONS / "s10-ap-broker-epoch-check-off.txt"), switches=()))
    cut_off = sound[:-1]
    found = check_traces([*losing, sound, cut_off], ALL_RULES, tmp_path)
    assert [each and each.action for each in found] == [*files.values(), None, "Finish"]
    decided = found[list(files.values()).index("Decide")]
    assert decided is not None
    assert decided.place.startswith("100-0:")


def test_a_run_without_a_partition_is_no_trace() -> None:
    with pytest.raises(ConfigError, match="in which a partition was created"):
        list(partition_traces(()))


def test_what_the_specification_lacks_is_refused_and_where_it_happened() -> None:
    run = run_of(plan_in(REGRESSIONS / "s37-elr-within-replicas-off.txt"))
    with pytest.raises(NotSpecifiedError, match=r"100-0:\d+.*no reassignments: the specification has none"):
        list(partition_traces(run))


@needs_tlc
def test_a_run_directory_is_exported_and_accepted(tmp_path: Path) -> None:
    plan = tmp_path / "plan.txt"
    plan.write_text(
        "cluster brokers=3\ntopic orders replicas=(0,1,2) min.insync.replicas=2\n"
        "produce orders-0 acks=all records=1\nwait 10\nkill 0\nwait 500\n"
    )
    cli(["replay", str(plan), "--out", str(tmp_path / "run")], standalone_mode=False)
    cli(["export", "--to", "tla", str(tmp_path / "run"), str(tmp_path / "traces")], standalone_mode=False)
    assert {path.name for path in (tmp_path / "traces").iterdir()} == {"Runs.tla", "Runs.cfg"}
    assert check_module(tmp_path / "traces") == (None,)
    module = (tmp_path / "traces" / "Runs.tla").read_text()
    (tmp_path / "traces" / "Runs.tla").write_text(module.replace('action |-> "Lead"', 'action |-> "Leap"', 1))
    [rejection] = check_module(tmp_path / "traces")
    assert isinstance(rejection, Rejection)
    assert rejection.action == "Leap"
