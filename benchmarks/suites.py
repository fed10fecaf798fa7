"""The time that suites take as commands, verification included: smoke on processes, the library in virtual time."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.cluster import BenchmarkError
from benchmarks.figure import Figure

SCENARIOS: Final = Path(__file__).parents[1] / "chaos" / "scenarios"


def measure() -> Iterator[Figure]:
    """Yields the seconds of the smoke suite, then those of every bundled scenario in the simulator."""
    yield Figure(name="suite_smoke_s", unit="s", values=(_seconds("smoke"),))
    yield Figure(name="suite_library_s", unit="s", values=(_seconds(str(SCENARIOS), "--driver", "simulator"),))


def _seconds(*arguments: str) -> float:
    with tempfile.TemporaryDirectory(prefix="laststand-bench-") as store:
        command = [sys.executable, "-m", "laststand.cli", "run", *arguments, "--out", store]
        began_s = time.monotonic()
        played = subprocess.run(command, capture_output=True, text=True, check=False)
        seconds = time.monotonic() - began_s
    if played.returncode:
        raise BenchmarkError(f"{' '.join(command)} ended with {played.returncode}:\n{played.stdout}")
    return seconds
