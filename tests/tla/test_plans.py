"""TLC's counter-examples as plans: each loses a record without its rule, and none with it."""

from functools import cache
from pathlib import Path
from typing import Final

import msgspec
import pytest

from laststand.emulator.plan.plan import parse_plan
from tests.tla.counterexample import read_states
from tests.tla.model_checker import SPECIFICATION, check
from tests.tla.models import MODELS, Invariant, Model
from tests.tla.on_processes import always_lost, broken, play, rows
from tests.tla.plan_of_counterexample import TranslationError, losses, plan_of
from tests.tla.test_models import QUICK, needs_tlc

PLANS: Final = sorted((Path(__file__).parent / "plans").glob("*.txt"))

ON_PROCESSES: Final = ("progress_of_this_term-off", "unclean_detection-off")
"""Those that are played on processes here: one whose result depends on time, and one that would settle."""

NOT_PLAYED: Final = {"truncate_before_hw=off"}
"""The README of the specification says why."""


@cache
def lost_in(file: Path) -> frozenset[str]:
    return frozenset(losses(parse_plan(file.read_text(encoding="utf-8"))))


def test_each_rule_has_a_plan() -> None:
    names = {model.name for model in MODELS if "=" in model.name} - NOT_PLAYED
    assert {file.stem for file in PLANS} == {name.replace("=", "-") for name in names}
    readme = SPECIFICATION.with_name("README.md").read_text(encoding="utf-8")
    assert all(f"/tests/tla/plans/{file.name}" in readme for file in PLANS)


@pytest.mark.parametrize("file", PLANS, ids=lambda file: file.stem)
def test_a_plan_loses_a_record_without_its_rule_alone(file: Path) -> None:
    plan = parse_plan(file.read_text(encoding="utf-8"))
    assert lost_in(file)
    assert not losses(msgspec.structs.replace(plan, switches=()))


def test_the_readme_says_of_each_plan_what_it_loses() -> None:
    said = rows()
    assert list(said) == [file.stem for file in PLANS]
    for file in PLANS:
        virtual, _ = said[file.stem]
        assert virtual == ", ".join(sorted(lost_in(file))), file.stem
    assert set(ON_PROCESSES) <= set(always_lost())


@pytest.mark.cluster
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", ON_PROCESSES)
def test_a_plan_loses_a_record_on_processes(name: str, tmp_path: Path) -> None:
    report = play(name, tmp_path)
    assert broken(report), report.unknown_reasons


@needs_tlc
@pytest.mark.parametrize("model", [model for model in MODELS if model.name in QUICK], ids=lambda model: model.name)
def test_tlc_finds_the_loss_without_a_rule_and_its_counter_example_becomes_a_plan(model: Model, tmp_path: Path) -> None:
    found = check(model, tmp_path)
    assert found.broken is model.broken is Invariant.NO_LOSS
    assert losses(plan_of(found.path, rule=model.name))


def test_a_path_that_loses_nothing_becomes_no_plan() -> None:
    initial = read_states(OUTPUT)[0]
    with pytest.raises(TranslationError, match="nothing was lost"):
        plan_of((initial,), rule="elr=off")


def test_what_tlc_prints_is_read() -> None:
    first, second = read_states(OUTPUT)
    assert (first.action, second.action) == ("Initial", "Produce")
    assert first.variables["partition"]["isr"] == ["b0", "b1"]
    assert second.variables["log"] == {"b0": ({"epoch": 1, "record": 1},), "b1": ()}
    assert second.variables["up"] == {"b0": True, "b1": False}
    assert second.variables["committed"] == [(1, {"epoch": 1, "record": 1})]
    assert read_states("No error has been found.\n") == ()


OUTPUT: Final = """State 1: <Initial predicate>
/\\ partition = [leader |-> b0, isr |-> {b0, b1}, elr |-> {}, minIsr |-> 2, lastKnownLeader |-> None]
/\\ up = (b0 :> TRUE @@ b1 :> TRUE)
/\\ committed = {}

State 2: <Produce line 283, col 5 to line 290, col 70 of module Replication>
/\\ up = (b0 :> TRUE @@ b1 :> FALSE)
/\\ log = (b0 :> <<[epoch |-> 1, record |-> 1]>> @@
  b1 :> <<>>)
/\\ committed = {<<1, [epoch |-> 1, record |-> 1]>>}

2 states generated.
"""
