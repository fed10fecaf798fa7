"""The tables of ``docs/mixed.md`` are those that virtual time plays."""

import pytest

from docs.mixed import FAULTS, PAGE, STEPS, known_losses, loss_row, roll_row

_SAMPLED_LOSSES = ("a-batch-across-the-common-high-watermark", "s03-truncation-kip101")


def lines() -> list[str]:
    return PAGE.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("step", [0, 6])
def test_the_page_has_what_a_step_of_the_roll_leads_to(step: int) -> None:
    assert f"| {' | '.join(roll_row(step))} |" in lines(), "make mixed"


def test_the_page_has_every_step_and_fault() -> None:
    assert f"| Step | {' | '.join(FAULTS)} |" in lines()
    rows = [line for line in lines()[lines().index("<!-- played: rolls -->") :] if line.startswith("| ")]
    assert [row.split(" | ")[0].removeprefix("| ") for row in rows][2:][: len(STEPS)] == [step.title for step in STEPS]


@pytest.mark.parametrize("name", _SAMPLED_LOSSES)
def test_the_page_has_where_the_rule_of_a_known_loss_suffices(name: str) -> None:
    (loss,) = (each for each in known_losses() if each.name == name)
    assert f"| {' | '.join(loss_row(loss))} |" in lines(), "make mixed"


def test_the_page_has_every_known_loss() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert [loss.name for loss in known_losses() if f"regressions/{loss.name}.txt" not in text] == []
