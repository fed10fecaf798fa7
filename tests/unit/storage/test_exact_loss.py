"""An exact power loss: it draws nothing, counts batches, and says what becomes of truncations."""

from random import Random

import pytest

from laststand.emulator.core.disk import ExactLoss, Keep, TruncationFate
from laststand.emulator.storage.power_loss_plan import (
    ContentSource,
    FileView,
    SurvivingContent,
    VolumeView,
    plan_power_loss,
)

STARTS = (0, 100, 250, 300)
"""Whole batches of a file of 420 bytes, of which the first 100 bytes are synced."""

GROWN = FileView(length=420, intact_length=100, durable_length=100)
CUT = FileView(length=300, intact_length=100, durable_length=250)


def survivor(view: FileView, keep: Keep, exact: ExactLoss, *, seed: int = 1) -> SurvivingContent:
    plan = plan_power_loss(
        VolumeView(roots={"/data": 1}, present={1: {"0.log": 2}}, durable={1: {"0.log": 2}}, files={2: view}),
        keep=keep,
        random=Random(seed),
        batch_starts=lambda _: STARTS,
        exact=exact,
    )
    return plan.contents[2]


@pytest.mark.parametrize(
    ("keep", "kept", "length", "zeroed"),
    [
        (Keep.NONE, 2, 100, ()),
        (Keep.PREFIX, 0, 100, ()),
        (Keep.PREFIX, 2, 300, ()),
        (Keep.PREFIX, 9, 300, ()),
        (Keep.TORN, 0, 360, ()),
        (Keep.PAGES, 1, 420, ((250, 300),)),
    ],
)
def test_it_keeps_so_many_batches_and_loses_at_least_one(
    keep: Keep, kept: int, length: int, zeroed: tuple[tuple[int, int], ...]
) -> None:
    exact = ExactLoss(kept=kept, truncation=TruncationFate.KEPT)
    for seed in range(5):
        content = survivor(GROWN, keep, exact, seed=seed)
        assert (content.source, content.length, content.zeroed) == (ContentSource.PRESENT, length, zeroed)


@pytest.mark.parametrize("keep", list(Keep))
def test_a_truncation_that_is_undone_brings_the_old_content_back(keep: Keep) -> None:
    content = survivor(CUT, keep, ExactLoss(kept=0, truncation=TruncationFate.UNDONE))
    assert content == SurvivingContent(source=ContentSource.DURABLE, length=250)


@pytest.mark.parametrize(("keep", "kept", "length"), [(Keep.NONE, 0, 100), (Keep.PREFIX, 1, 250)])
def test_a_truncation_that_is_kept_leaves_what_was_written_since_to_the_shape(
    keep: Keep, kept: int, length: int
) -> None:
    content = survivor(CUT, keep, ExactLoss(kept=kept, truncation=TruncationFate.KEPT))
    assert content == SurvivingContent(source=ContentSource.PRESENT, length=length)


def test_names_that_are_not_durable_vanish() -> None:
    plan = plan_power_loss(
        VolumeView(
            roots={"/data": 1},
            present={1: {"0.log": 2, "new": 3}},
            durable={1: {"0.log": 2}},
            files={2: GROWN, 3: FileView(length=1, intact_length=0, durable_length=0)},
        ),
        keep=Keep.PREFIX,
        random=Random(1),
        batch_starts=lambda _: STARTS,
        exact=ExactLoss(kept=0, truncation=TruncationFate.KEPT),
    )
    assert plan.names == {1: {"0.log": 2}}
