"""Outcomes of actions: "no-op" is said where nothing is different, and nowhere else."""

import ast
from pathlib import Path

from laststand.emulator.plan import actions

_ROOT = Path(__file__).parents[3]
_ACTIONS = _ROOT / "emulator/plan/actions.py"


def test_what_changed_nothing_and_what_was_not_seen_to_take_effect_are_distinguished() -> None:
    assert (actions.no_op("it runs").took_effect, actions.no_op("it runs").seen) == (False, "no-op: it runs")
    unseen = actions.unproved("a node did not sync")
    assert (unseen.took_effect, unseen.affected, unseen.seen) == (
        True,
        False,
        "no effect was seen: a node did not sync",
    )


def test_no_other_place_words_a_no_op() -> None:
    for folder in ("emulator", "chaos", "laststand/cli"):
        for path in (_ROOT / folder).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            if path == _ACTIONS or "no-op" not in text:
                continue
            literals = [node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant)]
            assert not [each for each in literals if isinstance(each, str) and each.startswith("no-op")], path
