"""SHA-256 of the jars of Kafka and its dependencies, for the versions that were played: ``kafka_jars.sha256``.

The file has the format of ``sha256sum``, one jar a line. Maven and Ivy check jars against checksums from the same place
as the jars; these checksums are independent of it.
"""

import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

import msgspec

_FILE: Final = Path(__file__).with_suffix(".sha256")


class JarCheck(msgspec.Struct, frozen=True, kw_only=True):
    """The result of comparing the jars in a folder with their checksums.

    Attributes:
        changed: jars whose content is not what was published under their name.
        unknown: jars without a known checksum.
    """

    changed: tuple[str, ...]
    unknown: tuple[str, ...]


def check_jars(folder: Path) -> JarCheck:
    """Compares all jars in a folder."""
    known = _checksums()
    jars = {jar.name: jar for jar in sorted(folder.glob("*.jar"))}
    return JarCheck(
        changed=tuple(name for name, jar in jars.items() if name in known and _checksum(jar) != known[name]),
        unknown=tuple(name for name in jars if name not in known),
    )


def is_known_version(version: str) -> bool:
    """Returns whether the checksums of all jars of a version are known."""
    return f"kafka-clients-{version}.jar" in _checksums()


def _checksum(jar: Path) -> str:
    return hashlib.sha256(jar.read_bytes()).hexdigest()


@cache
def _checksums() -> Mapping[str, str]:
    pairs = (line.split() for line in _FILE.read_text(encoding="ascii").splitlines())
    return {name: checksum for checksum, name in pairs}
