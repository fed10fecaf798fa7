"""The images that tests in containers need: one worker builds them, all others wait, and everybody hears the reason."""

import fcntl
import json
import os
import signal
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

_EXIT_MISSING: Final = 254
_LINES: Final = 20


@dataclass(frozen=True, kw_only=True)
class ImageBuild:
    """The outcome of a build.

    Attributes:
        is_possible: whether this machine can build images at all.
        problem: why there are none; ``None`` if there are.
    """

    is_possible: bool
    problem: str | None


def build_once(program: Path, *options: str, shared: Path, timeout_s: float) -> ImageBuild:
    """Builds, unless another worker of this test run has; whoever comes meanwhile waits for the end of it.

    Args:
        program: ``docker/build.sh``.
        options: of it.
        shared: a directory that all workers of one run have, and no other run.
        timeout_s: for the build.
    """
    told = shared / f"images{''.join(options)}.json"
    with (shared / "images.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not told.exists():
            told.write_text(json.dumps(asdict(_build(program, *options, timeout_s=timeout_s))), encoding="utf-8")
        return ImageBuild(**json.loads(told.read_text(encoding="utf-8")))


def _build(program: Path, *options: str, timeout_s: float) -> ImageBuild:
    command = " ".join([str(program), *options])
    with subprocess.Popen(
        [program, *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as building:
        try:
            said, _ = building.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(building.pid, signal.SIGKILL)
            said, _ = building.communicate()
            return ImageBuild(is_possible=True, problem=f"{command}: no end after {timeout_s:g} s; {_end(said)}")
    if building.returncode == 0:
        return ImageBuild(is_possible=True, problem=None)
    is_possible = building.returncode != _EXIT_MISSING
    return ImageBuild(is_possible=is_possible, problem=f"{command} ended with {building.returncode}: {_end(said)}")


def _end(said: str) -> str:
    return "\n".join(said.strip().splitlines()[-_LINES:]) or "it said nothing"
