"""The shim that keeps a sync ledger for programs that keep none, such as JVMs; see ``sync_shim.c``.

It is built on first use, by the compiler at hand, into the user's cache.
"""

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from laststand.emulator.core.errors import MissingToolError

_SOURCE: Final = Path(__file__).with_name("sync_shim.c")
_COMPILERS: Final = ("cc", "gcc", "clang")
_TIMEOUT_S: Final = 60


def find_sync_shim() -> Path:
    """Returns the library, built if necessary.

    Raises:
        MissingToolError: there is no compiler.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "laststand"
    library = cache / f"sync-shim-{hashlib.sha256(_SOURCE.read_bytes()).hexdigest()[:12]}.so"
    if not library.exists():
        cache.mkdir(parents=True, exist_ok=True)
        _build(library)
    return library


def sync_shim_environment(library: Path, *, data: Path, ledger: Path, notes: Path | None = None) -> dict[str, str]:
    """Returns the environment in which a program keeps a ledger of its changes below ``data``.

    Args:
        library: the shim.
        data: the program's directory.
        ledger: folder of its ledger, which was begun.
        notes: an empty file for what cannot be modelled; ``None`` for a program that changes no durable byte in place.
    """
    environment = {"LD_PRELOAD": str(library), "LASTSTAND_SYNC_ROOT": str(data), "LASTSTAND_SYNC_LEDGER": str(ledger)}
    return environment if notes is None else {**environment, "LASTSTAND_SYNC_NOTES": str(notes)}


def _build(library: Path) -> None:
    compiler = next(filter(None, map(shutil.which, _COMPILERS)), None)
    needed = "that records what a program syncs, which its power loss needs"
    if compiler is None:
        raise MissingToolError(tool="a C compiler", expected=f"cc on PATH: it builds the library {needed}")
    with tempfile.TemporaryDirectory(prefix="sync-shim-", dir=library.parent) as scratch:
        made = Path(scratch) / library.name
        command = (compiler, "-shared", "-fPIC", "-O2", "-U_FORTIFY_SOURCE", "-o", str(made), str(_SOURCE), "-ldl")
        built = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
        if built.returncode != 0:
            reason = (built.stderr.strip().splitlines() or ["it says nothing"])[-1]
            raise MissingToolError(tool="a C compiler", expected=f"one that builds the library {needed} ({reason})")
        made.replace(library)
