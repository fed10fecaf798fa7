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
from laststand.emulator.report.tla import (
    BOUNDS,
    RULES,
    NotSpecifiedError,
    Rejection,
    partition_traces,
    tla_configuration,
)
from laststand.emulator.simulator.run.journal import Journal
from laststand.emulator.simulator.run.simulation import Simulation
from tests.tla.model_checker import SPECIFICATION, rules_of_the_specification
from tests.tla.models import Bounds
from tests.tla.simulated_runs import logged
from tests.tla.test_models import needs_tlc
from tests.tla.traces import check_module, check_traces

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
    "s38-answers-await-metadata-off": "TakeAnswer",
    "s17-elr-always-cleared": "ChangeMinIsr",
    "cancel-requires-min-isr-off": "Reassign",
    "s40-downgrade-ignores-elr-off": "Unfence",
    "s42-min-isr-per-partition-off": "Fence",
    "s37-elr-within-replicas-off": "Reassign",
    "s51-lower-start-is-durable-off": "OpenLog",
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
    names = [file for file, run in zip(files, losing, strict=True) for _ in partition_traces(run)]
    sound = run_of(msgspec.structs.replace(plan_in(REGRESSIONS / "s10-ap-broker-epoch-check-off.txt"), switches=()))
    cut_off = sound[:-1]
    found = check_traces([*losing, sound, cut_off], ALL_RULES, tmp_path)
    rejected = {file: each for file, each in zip(names, found, strict=False) if each is not None}
    assert {file: each.action for file, each in rejected.items()} == files
    assert [each and each.action for each in found[len(names) :]] == [None, "Finish"]
    assert all(each.place.startswith("100-0:") for each in rejected.values() if each.action == "Decide")


def test_a_run_without_a_partition_is_no_trace() -> None:
    with pytest.raises(ConfigError, match="in which a partition was created"):
        list(partition_traces(()))


def test_what_the_specification_lacks_is_refused_and_where_it_happened() -> None:
    plan = """cluster brokers=1 era=kafka-3.9
topic orders replicas=(0) min.insync.replicas=1
alter_config: {broker: 0, set: {min.insync.replicas: 2}}
wait 10
"""
    with pytest.raises(
        NotSpecifiedError, match=r"100-0:\d+.*no min ISR of a single broker: the specification has none"
    ):
        list(partition_traces(run_of(parse_plan(plan))))


def test_an_append_that_a_killed_process_did_not_record_is_a_line_of_its_own() -> None:
    run = run_of(plan_in(REGRESSIONS / "an-append-of-which-nobody-told.txt"))
    assert any(line["action"] == "Keep" for trace in partition_traces(run) for line in trace)


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


@needs_tlc
def test_a_trace_without_lines_is_not_accepted(tmp_path: Path) -> None:
    (tmp_path / "Runs.tla").write_text(
        "\n".join(["---- MODULE Runs ----", "EXTENDS Trace", "Nodes == {0}", "Traces == << <<>> >>", "===="])
    )
    (tmp_path / "Runs.cfg").write_text("\n".join(tla_configuration(ALL_RULES)))
    [rejection] = check_module(tmp_path)
    assert rejection is not None
    assert rejection.action == "Finish"
