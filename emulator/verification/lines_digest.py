"""The digest of a file of lines, as its seal and the harness give it: the oracle's own arithmetic.

SHA-256 over the SHA-256 of each MiB of the file, in order. The line that seals the file does not count, nor does what
stands after the last line end.
"""

import hashlib
from typing import Final, NamedTuple

_PART_BYTES: Final = 1 << 20
_SEALS: Final = (b'"type":"FileSealed"', b'"type": "FileSealed"', b'"f":"sealed"', b'"f": "sealed"')


class FileContent(NamedTuple):
    """How many lines a file has, and their digest."""

    lines: int
    digest: str


class LinesDigest:
    """Takes a file block by block; blocks end with lines, but for the last one."""

    def __init__(self) -> None:
        self._lines = 0
        self._parts: list[bytes] = []
        self._rest = b""
        self._held = b""

    def add(self, block: bytes) -> None:
        """Takes the next block. Only the last one may be torn, or end with a seal, so it is held back."""
        self._take(self._held)
        self._held = block

    def finish(self) -> FileContent:
        """Returns what the file holds."""
        whole = self._held[: self._held.rfind(b"\n") + 1]
        start_of_last = whole.rfind(b"\n", 0, -1) + 1
        last = whole[start_of_last:]
        self._take(whole[:start_of_last] if any(seal in last for seal in _SEALS) else whole)
        if self._rest:
            self._parts.append(hashlib.sha256(self._rest).digest())
        return FileContent(self._lines, hashlib.sha256(b"".join(self._parts)).hexdigest())

    def _take(self, content: bytes) -> None:
        self._lines += content.count(b"\n")
        content = self._rest + content
        view = memoryview(content)
        end = len(content) - len(content) % _PART_BYTES
        self._parts.extend(
            hashlib.sha256(view[start : start + _PART_BYTES]).digest() for start in range(0, end, _PART_BYTES)
        )
        self._rest = content[end:]
