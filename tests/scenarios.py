"""Plays every bundled scenario under each era that it has an expectation for: ``make scenarios``.

Each runs from the command line. Prints a line per scenario; exits with 1 if an expectation was missed, and with 2 if
one is undecided.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from chaos.scenario.scenario_file import find_scenario, load_scenario, scenario_names

ROOT: Final = Path(__file__).parents[1]


def play(name: str, *, driver: str, store: Path) -> tuple[int, str]:
    """Plays one scenario; returns its exit code and its last lines, one per era."""
    eras = [era for era, _ in load_scenario(find_scenario(name)).expect]
    chosen = [argument for era in eras for argument in ("--era", era)]
    result = subprocess.run(
        [sys.executable, "-m", "emulator.cli", "run", name, "--driver", driver, "--out", str(store), *chosen],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    lines = result.stdout.splitlines()[-len(eras) :] if result.returncode in (0, 1, 2) else [result.stderr]
    return result.returncode, "\n".join(f"  {line}" for line in lines)


def main() -> int:
    """Plays them one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--driver", choices=("process", "simulator"), default="process")
    parser.add_argument("names", nargs="*", default=scenario_names(), help="all of them by default")
    options = parser.parse_args()
    worst = 0
    with tempfile.TemporaryDirectory(prefix="laststand-scenarios-") as directory:
        for name in options.names:
            started = time.monotonic()
            code, lines = play(name, driver=options.driver, store=Path(directory))
            sys.stdout.write(f"{name}: exit code {code}, {time.monotonic() - started:.1f} s\n{lines}\n")
            sys.stdout.flush()
            worst = 1 if 1 in (worst, code) else max(worst, code)
    return worst


if __name__ == "__main__":
    sys.exit(main())
