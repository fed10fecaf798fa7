"""Applications of the user beside a run: what they find, how they end, and what of that is a problem."""

import asyncio
import logging
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from laststand.chaos.process.applications import Applications, ApplicationStartError

LOGGER = logging.getLogger(__name__)


def play(
    command: str, directory: Path, until: Callable[[str, list[str]], bool], *, timeout_ms: int = 10_000
) -> list[str]:
    """Runs one application until its log or its problems show something, and ends it; returns the problems."""
    problems: list[str] = []
    log = directory / "application-app.log"

    async def run() -> None:
        made = Applications({"app": command}, directory=directory, logger=LOGGER, on_problem=problems.append)
        async with made as applications, asyncio.timeout(20):
            await applications.start({"app": "127.0.0.1:1,127.0.0.1:2"})
            while not until(log.read_text() if log.exists() else "", problems):  # noqa: ASYNC110
                await asyncio.sleep(0.005)  # between two looks at what it wrote
            await applications.stop(timeout_ms=timeout_ms)

    asyncio.run(run())
    return problems


def waits(*lines: str) -> str:
    """Returns a command that runs these lines, says that it is there, and waits for its end."""
    return f"sh -c '{'; '.join(lines)}; echo there; sleep 60 & wait'"


def is_there(log: str, _: list[str]) -> bool:
    return "there" in log


def test_an_application_finds_its_brokers_and_ends_when_it_is_asked_to(tmp_path: Path) -> None:
    assert play(waits('echo "at $BOOTSTRAP_SERVERS"'), tmp_path, is_there) == []
    assert "at 127.0.0.1:1,127.0.0.1:2\n" in (tmp_path / "application-app.log").read_text()


def test_an_application_may_end_by_itself(tmp_path: Path) -> None:
    assert play("sh -c 'echo there'", tmp_path, is_there) == []


def test_an_application_that_fails_is_a_problem(tmp_path: Path) -> None:
    (problem,) = play("sh -c 'echo no broker; exit 3'", tmp_path, lambda _, problems: bool(problems))
    assert problem == "application app ended with exit code 3\n  no broker"


def test_an_application_that_does_not_end_is_a_problem(tmp_path: Path) -> None:
    (problem,) = play("sh -c 'trap : TERM; echo there; while :; do sleep 1; done'", tmp_path, is_there, timeout_ms=200)
    assert problem.startswith("application app did not end in time")


@pytest.mark.parametrize("end", ["wait", "exit 0"])
def test_nothing_that_an_application_started_outlives_it(tmp_path: Path, end: str) -> None:
    command = f"sh -c 'sleep 60 & echo $! > sleeping; echo there; {end}'"
    assert play(command.replace("sleeping", str(tmp_path / "sleeping")), tmp_path, is_there) == []
    sleeping = Path("/proc", (tmp_path / "sleeping").read_text().strip(), "stat")
    deadline = time.monotonic() + 5
    while sleeping.exists() and ") Z " not in sleeping.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ApplicationStartError, match="application app could not be started: there is no program 'nope'"):
        play("nope --fast", tmp_path, is_there)
