"""The rows of an ended run, kept in its directory, so that only the first query decodes the run's evidence.

::

    RUN/tables.cache    SHA-256 of the rest, 32 bytes
                        MessagePack: the key, and blocks of rows by table

The key is a digest of everything that determines the rows: the evidence, byte by byte, the run's path and description,
and this program's own code. So kept rows always belong to the present evidence, and an outdated file need not be
removed: it is ignored, and the next query replaces it. A file is written under a temporary name and renamed, so it is
complete or absent. If a directory cannot be written, the next query decodes the evidence again.
"""

import contextlib
import functools
import hashlib
import os
import secrets
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import Final

import msgspec

import laststand.emulator
from laststand.emulator.user_files import open_file, read_bytes
from laststand.emulator.verification.reading.run_plan import RunPlan

KEPT_FILE: Final = "tables.cache"
"""Name of the file in a run's directory."""

_DIGEST_BYTES: Final = 32
_BLOCK_BYTES: Final = 1 << 20
_UNFINISHED: Final = ".unfinished"


class Keeping(Enum):
    """The choice to keep rows in the directories of runs, or not."""

    KEEP = "keep"
    """Rows that are kept are taken, and others are kept."""

    NONE = "none"
    """Every run is decoded, and nothing is written."""


class _Kept(msgspec.Struct, frozen=True, array_like=True):
    key: bytes
    blocks: tuple[tuple[str, bytes], ...]


_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(_Kept)


@functools.cache
def program_digest() -> bytes:
    """Returns the digest of this program's code, because other code may derive other rows from the same evidence."""
    package = Path(laststand.emulator.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        _add(digest, str(path.relative_to(package)).encode())
        _add(digest, path.read_bytes())
    return digest.digest()


def evidence_key(plan: RunPlan, program: bytes) -> bytes:
    """Returns the key under which rows of a run are kept.

    Args:
        plan: which files of the run are read.
        program: digest of the driver's code, which the executors of a Spark cluster run, too.

    Raises:
        OSError: a file cannot be read.
    """
    run = plan.run
    digest = hashlib.sha256()
    _add(digest, program)
    _add(digest, msgspec.json.encode(run, enc_hook=str))
    for path in sorted(path for path in run.nodes.glob("*/data/*") if path.is_dir()):
        _add(digest, str(path.relative_to(run.path)).encode())  # an empty directory is evidence, too
    for name in sorted(plan.sizes):
        _add(digest, name.encode())
        _add(digest, _file_digest(run.path / name))
    return digest.digest()


def stored_rows(run: Path, key: bytes) -> tuple[tuple[str, bytes], ...] | None:
    """Returns the kept blocks of rows by table; ``None`` if no file with this key exists."""
    try:
        content = read_bytes(run / KEPT_FILE)
        if hashlib.sha256(memoryview(content)[_DIGEST_BYTES:]).digest() != content[:_DIGEST_BYTES]:
            return None
        kept = _DECODER.decode(memoryview(content)[_DIGEST_BYTES:])
    except (OSError, msgspec.DecodeError):
        return None
    return kept.blocks if kept.key == key else None


def store_rows(run: Path, key: bytes, blocks: Sequence[tuple[str, bytes]]) -> None:
    """Keeps the rows of a run, if its directory can be written."""
    content = _ENCODER.encode(_Kept(key, tuple(blocks)))
    unfinished = run / f"{KEPT_FILE}.{secrets.token_hex(4)}{_UNFINISHED}"
    with contextlib.suppress(OSError):
        for left in run.glob(f"{KEPT_FILE}.*{_UNFINISHED}"):
            left.unlink(missing_ok=True)  # of a process that was killed; whoever still writes it keeps nothing
        try:
            with unfinished.open("xb") as file:
                file.write(hashlib.sha256(content).digest())
                file.write(content)
            os.replace(unfinished, run / KEPT_FILE)
        finally:
            unfinished.unlink(missing_ok=True)


def _add(digest: "hashlib._Hash", part: bytes) -> None:
    digest.update(len(part).to_bytes(8, "big"))
    digest.update(part)


def _file_digest(path: Path) -> bytes:
    digest = hashlib.sha256()
    with open_file(path) as file:
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
    return digest.digest()
