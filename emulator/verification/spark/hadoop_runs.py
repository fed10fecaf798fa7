"""Runs on a file system that Hadoop has a client for (``hdfs:``, ``s3a:``, ``viewfs:`` and others).

The JVM of the Spark session copies such a run to a directory of this machine, where it is judged like any other, and
copies the files of the verdict back.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from laststand.emulator.core.errors import ConfigError

if TYPE_CHECKING:
    from laststand.emulator.verification.spark.tasks import SparkTasks

_URI: Final = re.compile(r"[a-z][a-z0-9+.-]*:/", re.IGNORECASE)
_KEEP_SOURCE: Final = False
_OVERWRITE: Final = True
_WITHOUT_CHECKSUM_FILES: Final = True


def is_uri(location: str) -> bool:
    """Returns whether a run's location is a URI of a file system, and not a path of this machine."""
    return _URI.match(location) is not None


class HadoopRun:
    """A run at a URI, and its copy.

    Attributes:
        path: of the copy.

    Args:
        uri: of the run directory.
        directory: for the copy; must not exist.
        spark: the session, whose settings (``spark.hadoop.*``) configure the access to the file system.

    Raises:
        ConfigError: the file system does not answer, or has no such directory.
        OSError: the copy's directory cannot be made.
    """

    def __init__(self, uri: str, directory: Path, *, spark: "SparkTasks") -> None:
        from py4j.protocol import Py4JJavaError

        self._uri = uri
        context: Any = spark.sparkContext
        self._new_path: Any = context._jvm.org.apache.hadoop.fs.Path
        try:
            self._run = self._new_path(uri)
            self._files = self._run.getFileSystem(context._jsc.hadoopConfiguration())
            is_there = self._files.exists(self._run)
            if is_there:
                # Below a directory of the same name, because that may name the scenario.
                above = directory / self._run.getParent().getName()
                above.mkdir(parents=True)
                self.path = above / self._run.getName()
                local = self._new_path(self.path.as_uri())
                self._files.copyToLocalFile(_KEEP_SOURCE, self._run, local, _WITHOUT_CHECKSUM_FILES)
        except Py4JJavaError as error:
            expected = f"a file system that answers ({_reason(error)})"
            raise ConfigError(key="run", value=uri, expected=expected) from None
        if not is_there:
            raise ConfigError(key="run", value=uri, expected="a run directory (events/, history, nodes/)")

    def store_results(self, names: Iterable[str]) -> None:
        """Copies files that verification wrote beside the copy to the run itself.

        Args:
            names: of the files; those that were not written are passed over.

        Raises:
            OSError: the file system refuses it.
        """
        from py4j.protocol import Py4JJavaError

        for name in names:
            source = self.path / name
            if source.exists():
                try:
                    target = self._new_path(self._run, name)
                    self._files.copyFromLocalFile(_KEEP_SOURCE, _OVERWRITE, self._new_path(source.as_uri()), target)
                except Py4JJavaError as error:
                    raise OSError(0, _reason(error), self._uri) from None


def _reason(error: Any) -> str:
    """Returns Java's message about a failure, in a line."""
    message: str = error.java_exception.getMessage() or error.java_exception.getClass().getSimpleName()
    return message.splitlines()[0]
