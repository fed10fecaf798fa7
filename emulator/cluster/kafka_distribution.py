"""Apache Kafka's programs in the user's cache, one folder per version, made by ``laststand kafka install``.

::

    $XDG_CACHE_HOME/laststand/kafka/4.2.0/jars/          Kafka's jars and those that they need
                                         /elr-on/        the log directory of a controller as it is formatted,
                                         /elr-off/       with eligible leader replicas and without
                                         /classes.jsa    archive of the loaded classes (JEP 350): starts in a third
"""

import os
from pathlib import Path
from typing import Final

import msgspec

from laststand.emulator.core.errors import MissingToolError

PLAYED_VERSION: Final = "4.2.0"
"""The version that messages suggest: scenarios have been played on it."""

JVM_OPTIONS: Final = (
    "-Xms32m",
    "-Xmx192m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Djava.awt.headless=true",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
)
"""Small heaps and quick starts; compiled well enough for brokers with little to do."""

_FIRST_WITH_ELR: Final = (4, 0)


class KafkaDistribution(msgspec.Struct, frozen=True, kw_only=True):
    """An installed version.

    Attributes:
        version: such as ``4.2.0``.
        folder: of its files.
    """

    version: str
    folder: Path

    @property
    def numbers(self) -> tuple[int, ...]:
        """The version, to compare."""
        return tuple(int(number) for number in self.version.split("."))

    @property
    def has_elr(self) -> bool:
        """This version has KIP-966's eligible leader replicas."""
        return self.numbers >= _FIRST_WITH_ELR

    @property
    def class_path(self) -> str:
        """All jars, in the same order as in the archive of classes."""
        return os.pathsep.join(str(jar) for jar in sorted((self.folder / "jars").glob("*.jar")))

    @property
    def class_archive(self) -> Path:
        """The archive of the loaded classes."""
        return self.folder / "classes.jsa"

    def formatted(self, *, elr: bool) -> Path:
        """Returns a controller's formatted log directory.

        The records that begin its metadata log are a file ``bootstrap.checkpoint``, or since KIP-1170 the log's first
        checkpoint.
        """
        return self.folder / ("elr-on" if elr and self.has_elr else "elr-off")


class KafkaProgram(msgspec.Struct, frozen=True, kw_only=True):
    """The program that starts a node, of an installed version."""

    distribution: KafkaDistribution
    java: Path
    jvm_options: tuple[str, ...] = JVM_OPTIONS


def kafka_cache() -> Path:
    """Returns the directory of installed versions."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "laststand" / "kafka"


def installed_versions() -> tuple[str, ...]:
    """Returns the versions that are installed, newest first."""
    found = [path.name for path in kafka_cache().glob("*") if (path / "jars").is_dir() and path.name[0].isdigit()]
    return tuple(sorted(found, key=lambda version: [int(part) for part in version.split(".")], reverse=True))


def find_kafka(version: str | None) -> KafkaDistribution:
    """Returns an installed version; the newest one by default.

    Raises:
        MissingToolError: the version is not installed.
    """
    there = installed_versions()
    wanted = version or next(iter(there), None)
    if wanted is None or wanted not in there:
        name = "Apache Kafka" if wanted is None else f"Apache Kafka {wanted}"
        raise MissingToolError(
            tool=name,
            expected=f"it in {kafka_cache()}, where there is {', '.join(there) or 'no version'}; "
            f"laststand kafka install {wanted or PLAYED_VERSION} puts it there",
        )
    return KafkaDistribution(version=wanted, folder=kafka_cache() / wanted)
