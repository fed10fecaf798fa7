"""Checks the requirements of a command, before anything starts."""

import importlib.util
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from laststand.cli.program.user_error import UserError
from laststand.emulator.core.errors import MissingToolError

if TYPE_CHECKING:
    from laststand.chaos.scenario.scenario import Scenario
    from laststand.emulator.core.switches import Switches
    from laststand.emulator.plan.drivers import DriverName
    from laststand.emulator.verification.judges import JudgeName

VERIFIER: Final = "LASTSTAND_VERIFIER"
"""A variable, which the client's service of a compose project has: how a command gets to where Spark is."""


def check_new(out: Path) -> None:
    """Checks that the path of ``--out`` does not exist yet.

    Raises:
        UserError: the path exists.
    """
    if out.exists():
        raise UserError(f"--out {out}: exists; expected a new directory")


def verify_command(run: str | Path) -> str:
    """Returns the command that judges a run; in a compose project it runs in the container that has Spark."""
    elsewhere = os.environ.get(VERIFIER)
    return f"{elsewhere} laststand verify {run}" if elsewhere else f"laststand verify {run}"


def require_spark() -> None:
    """Checks that verification can run.

    Raises:
        MissingToolError: no pyspark, or no Java that is new enough.
    """
    from laststand.emulator.verification.spark.java import find_java

    if importlib.util.find_spec("pyspark") is None:
        expected = "it installed: pip install 'laststand[verify]', or make setup"
        if os.environ.get(VERIFIER):
            expected = f"the image that has it: {verify_command('RUN')}"
        raise MissingToolError(tool="pyspark", expected=expected)
    find_java()


def require_judge(judge: "JudgeName") -> None:
    """Checks that a judge can judge.

    Raises:
        MissingToolError: the judge is Spark, and there is no pyspark, or no Java that is new enough.
    """
    from laststand.emulator.verification.judges import JudgeName

    if judge is JudgeName.SPARK:
        require_spark()


def require_view() -> None:
    """Checks that a live view can be served.

    Raises:
        MissingToolError: no aiohttp.
    """
    if importlib.util.find_spec("aiohttp") is None:
        raise MissingToolError(tool="aiohttp", expected="it installed: pip install 'laststand[view]', or make setup")


def require_kio() -> None:
    """Checks that the library for Kafka's protocol is installed.

    Raises:
        MissingToolError: no kio.
    """
    if importlib.util.find_spec("kio") is None:
        raise MissingToolError(tool="kio", expected="it installed: pip install 'laststand[kafka]', or make setup")


def require_toxiproxy() -> Path:
    """Returns the program of toxiproxy-server.

    Raises:
        MissingToolError: toxiproxy-server is not installed and was not built.
    """
    from laststand.emulator.cluster.toxiproxy_build import find_toxiproxy

    return find_toxiproxy()


def require_rules(
    scenario: "Scenario", era: str, switches: "Switches", properties: tuple[tuple[str, str], ...]
) -> None:
    """Checks that an era, with changes, has what a scenario requires.

    Raises:
        UserError: a requirement is not met; the text names the line.
    """
    from laststand.chaos.scenario.requirements import unmet

    missing = unmet(scenario, era, switches, properties)
    if missing:
        raise UserError(f"{scenario.path}: {'; '.join(missing)}")


def require_driver(
    driver: "DriverName", scenario: "Scenario", properties: tuple[tuple[str, str], ...], *, eras: Iterable[str]
) -> None:
    """Checks that a driver can play everything in a scenario, in each of these eras.

    Raises:
        UserError: the driver cannot play a part of it; the text names step and line.
    """
    from laststand.chaos.play.expressible import not_expressible, not_in_era

    missing = not_expressible(scenario, properties, driver)
    if missing:
        raise UserError(f"{scenario.path}: --driver {driver.value} cannot play {'; '.join(missing)}")
    for era in eras:
        missing = not_in_era(scenario, properties, era, driver)
        if missing:
            raise UserError(f"{scenario.path}: --driver {driver.value} cannot play, in {era}, {'; '.join(missing)}")
