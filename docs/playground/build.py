"""Builds the playground: ``python -m docs.playground.build DIRECTORY``.

Pyodide comes from npm, msgspec's wheel for it from pip's index, both pinned and kept in the user's cache; the simulator
is what lies in this repository. All of it is packed into one script, as a page that is opened from disk may load
scripts and nothing else. The result needs no network and no server.
"""

import base64
import gzip
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import typing_extensions
import yaml

from docs.playground.scenario_play import era_of
from laststand.chaos.scenario.scenario import VerdictName
from laststand.chaos.scenario.scenario_file import load_scenario

ROOT: Final = Path(__file__).parents[2]
PYODIDE: Final = "314.0.7"
MSGSPEC: Final = "0.22.0"
PLATFORM: Final = ("--platform", "pyemscripten_2026_0_wasm32", "--python-version", "314", "--abi", "cp314")
_OF_PYODIDE: Final = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
_LEFT_OUT: Final = re.compile(
    r"(_pyrepl|doctest|ftplib|imaplib|multiprocessing|pdb|pydoc|smtplib|unittest|wsgiref|xml|xmlrpc)[/.]"
    r"|encodings/(big5|cp(?!437)|euc|gb|hz|iso|johab|koi|kz|mac|ptcp|shift|tis)"
)
"""Of Python's library, by path: a tenth of what a reader would have to load, and nothing imports it."""

_PAGE: Final = ("index.html", "playground.css", "playground.js")
_PACKAGES: Final = (
    *(f"emulator/{name}" for name in ("core", "plan", "simulator", "storage")),
    *(f"chaos/{name}" for name in ("play", "scenario", "simulated")),
)
_MODULES: Final = (
    "chaos/__init__.py",
    "emulator/__init__.py",
    "emulator/user_files.py",
    "emulator/user_yaml.py",
    *(
        f"emulator/client/{name}.py"
        for name in ("__init__", "admin", "admin_error", "config", "control", "counters", "members", "pace")
    ),
    *(f"emulator/rpc/{name}.py" for name in ("__init__", "interception", "json_codec")),
    *(f"emulator/kafka/{name}.py" for name in ("__init__", "api_names")),
    "emulator/verification/__init__.py",
    *(f"emulator/verification/verdict/{name}.py" for name in ("__init__", "requested")),
)
"""Of packages that need more than a browser has."""

_OWN: Final = ("__init__", "scenario_play", "session")
_SCENARIOS: Final = ROOT / "chaos" / "scenarios"
_PLANS: Final = ROOT / "tests" / "simulation" / "regressions"

_CRC32C: Final = '''"""CRC-32C by a table; the C library of that name has no wheel for a browser."""

_TABLE = []
for _byte in range(256):
    for _ in range(8):
        _byte = _byte >> 1 ^ (0x82F63B78 if _byte & 1 else 0)
    _TABLE.append(_byte)


def crc32c(data, value=0):
    value ^= 0xFFFFFFFF
    for byte in bytes(data):
        value = _TABLE[(value ^ byte) & 0xFF] ^ value >> 8
    return value ^ 0xFFFFFFFF
'''

_FIRST_STORY: Final = """\
# The example of KIP-966: the ISR shrinks to one broker, which loses power with records that were never synced.
# Choose the era kip-966, and nothing is lost.
cluster brokers=3 era=kafka-3.9
topic orders replicas=(0,1,2) min.insync.replicas=2
produce orders-0 acks=all records=3
wait 100
isolate 0
wait 900
produce orders-0 acks=all records=3
wait 300
isolate 1
wait 900
power-loss 2 keep=none kept=0 truncation=kept
wait 600
start 2
wait 600
heal
wait 1000
"""


def build(directory: Path) -> None:
    """Writes the playground into a directory, in the place of what it holds."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    for name in _PAGE:
        shutil.copy(Path(__file__).parent / name, directory)
    packed = {name: base64.b64encode(gzip.compress(content, mtime=0)).decode() for name, content in _files()}
    worker = (Path(__file__).parent / "worker.js").read_text(encoding="utf-8")
    parts = {"FILES": packed, "WORKER": worker, "STORIES": list(_presets())}
    script = "".join(f"self.{name} = {json.dumps(part)};\n" for name, part in parts.items())
    (directory / "simulator.js").write_text(script, encoding="utf-8")


def _files() -> Iterator[tuple[str, bytes]]:
    """Yields the content of what the worker runs, with the name by which it asks for it."""
    with tarfile.open(npm_package("pyodide", PYODIDE)) as archive:
        for name in _OF_PYODIDE:
            source = archive.extractfile(f"package/{name}")
            assert source is not None
            yield name, _trimmed(source.read()) if name == "python_stdlib.zip" else source.read()
    wheel = _msgspec()
    yield wheel.name, wheel.read_bytes()
    simulator = io.BytesIO()
    with zipfile.ZipFile(simulator, "w") as packed:
        for path, name in _sources():
            packed.write(path, name)
        packed.writestr("crc32c.py", _CRC32C)
    yield "laststand.zip", simulator.getvalue()


def _trimmed(library: bytes) -> bytes:
    """Returns an archive of Python's library without what is left out, and not compressed: that is done once, later."""
    trimmed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(library)) as found, zipfile.ZipFile(trimmed, "w") as kept:
        for name in found.namelist():
            if not _LEFT_OUT.match(name):
                kept.writestr(zipfile.ZipInfo(name), found.read(name))
    return trimmed.getvalue()


def _cache() -> Path:
    found = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "laststand" / "playground"
    found.mkdir(parents=True, exist_ok=True)
    return found


def npm_package(name: str, version: str) -> Path:
    """Returns the archive of a package of npm, which is kept in the user's cache.

    Raises:
        CalledProcessError: it is not there, and cannot be had.
    """
    package = _cache() / f"{name}-{version}.tgz"
    if not package.exists():
        subprocess.run(["npm", "pack", "--silent", f"{name}@{version}"], cwd=_cache(), check=True)
    return package


def _msgspec() -> Path:
    found = list(_cache().glob(f"msgspec-{MSGSPEC}-*.whl"))
    if not found:
        wanted = ("--no-deps", "--only-binary=:all:", *PLATFORM, f"msgspec=={MSGSPEC}")
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", *wanted], cwd=_cache(), check=True)
        found = list(_cache().glob(f"msgspec-{MSGSPEC}-*.whl"))
    return found[0]


def _sources() -> Iterator[tuple[Path, str]]:
    """Yields the Python files that the simulator needs, and their names in the archive."""
    for name in ("laststand/__init__.py", *(f"docs/playground/{each}.py" for each in _OWN)):
        yield ROOT / name, name
    for name in _MODULES:
        yield ROOT / name, f"laststand/{name}"
    for package in _PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            yield path, f"laststand/{path.relative_to(ROOT)}"
    for path in sorted(Path(yaml.__file__).parent.glob("*.py")):
        yield path, f"yaml/{path.name}"
    yield Path(typing_extensions.__file__), "typing_extensions.py"


def _presets() -> Iterator[dict[str, str]]:
    """Yields stories: the first one, every kept plan, and every scenario, where it loses if it does in some era.

    Those that virtual time cannot play are there, too: the page says why.
    """
    yield {"title": "The last replica standing loses power (KIP-966)", "plan": _FIRST_STORY}
    for path in sorted(_PLANS.glob("*.txt")):
        yield {"title": path.stem.replace("-", " "), "plan": path.read_text()}
    for path in sorted(_SCENARIOS.rglob("*.yaml")):
        scenario = load_scenario(path)
        failing = [era for era, expected in scenario.expect if expected.verdict is VerdictName.VIOLATION]
        era = failing[0] if failing else era_of(scenario)
        chosen = "" if scenario.rules is not None else f"era: {era}\n"
        yield {"title": scenario.name, "plan": chosen + scenario.text}


if __name__ == "__main__":
    build(Path(sys.argv[1]))
