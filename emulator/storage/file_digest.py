"""The digest by which a file of evidence is sealed: SHA-256 over the SHA-256 of each MiB of it, in order.

Parts of a large file can so be checked side by side. ``emulator.verification`` has an implementation of its own.
"""

import hashlib
from pathlib import Path
from typing import Final, NamedTuple

PART_BYTES: Final = 1 << 20
"""Length of all parts but the last."""

_SEALS: Final = (b'"type":"FileSealed"', b'"type": "FileSealed"', b'"f":"sealed"', b'"f": "sealed"')


class FileDigest:
    """The digest of what was written so far, and how many lines that is."""

    def __init__(self) -> None:
        self.lines = 0
        self._parts = hashlib.sha256()
        self._part = hashlib.sha256()
        self._room = PART_BYTES

    def update(self, content: bytes) -> None:
        """Adds what is written next."""
        self.lines += content.count(b"\n")
        rest = memoryview(content)
        while rest:
            self._part.update(rest[: self._room])
            taken = min(self._room, len(rest))
            rest, self._room = rest[taken:], self._room - taken
            if not self._room:
                self._parts.update(self._part.digest())
                self._part, self._room = hashlib.sha256(), PART_BYTES

    def hexdigest(self) -> str:
        """Returns the digest as text."""
        whole = self._parts.copy()
        if self._room < PART_BYTES:
            whole.update(self._part.digest())
        return whole.hexdigest()


class FileContent(NamedTuple):
    """How many lines a file has, and their digest."""

    lines: int
    digest: str


def content_of(path: Path) -> FileContent:
    """Returns what a file of lines holds, without its seal and without a torn last line.

    Raises:
        OSError: it cannot be read.
    """
    digest = FileDigest()
    held = b""
    with path.open("rb") as file:
        while block := file.read(PART_BYTES):
            digest.update(held)
            held = block + file.readline()
    whole = held[: held.rfind(b"\n") + 1]
    last = whole[whole.rfind(b"\n", 0, -1) + 1 :]
    is_sealed = any(seal in last for seal in _SEALS)
    digest.update(whole.removesuffix(last) if is_sealed else whole)
    return FileContent(digest.lines, digest.hexdigest())
