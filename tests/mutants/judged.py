"""``judged.txt``: which contents of files have been gone through, so that no commit is needed to tell what has changed.

Each line is the SHA-256 of a file and its path, as ``sha256sum`` prints them.
"""

from collections.abc import Collection, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Self


class Judged:
    """What the list says.

    Args:
        path: of the list.
        digests: by file.
    """

    def __init__(self, path: Path, digests: dict[Path, str]) -> None:
        self._path = path
        self._digests = digests

    @classmethod
    def read(cls, path: Path) -> Self:
        """Reads the list; one that is not there is empty."""
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        return cls(path, {Path(name): digest for digest, name in (line.split("  ") for line in lines)})

    def without(self, files: Sequence[Path]) -> list[Path]:
        """Returns the files that have other contents than those that were judged."""
        return [path for path in files if self._digests.get(path) != digest_of(path)]

    def note(self, files: Sequence[Path], *, among: Collection[Path]) -> None:
        """Writes down that these files were judged as they are; none is listed that is not among those mutated."""
        known = {path: digest for path, digest in self._digests.items() if path in among}
        digests = {**known, **{path: digest_of(path) for path in files}}
        text = "".join(f"{digest}  {path}\n" for path, digest in sorted(digests.items()))
        self._path.write_text(text, encoding="utf-8")


def digest_of(path: Path) -> str:
    """Returns the SHA-256 of a file."""
    return sha256(path.read_bytes()).hexdigest()
