"""Runs as Spark tables, for questions of your own.

::

    from laststand import read_runs, spark

    runs = read_runs(spark(), ["store/kip-966/last-replica-standing/latest"])
    runs.partition_changes.select("time_s", "leader", "isr", "elr").show()
    runs.events["LogTruncated"].groupBy("reason").count().show()

docs/tables.md describes the tables, docs/analyses.md the bundled analyses.
"""

from laststand.emulator.analysis.kept_tables import Keeping
from laststand.emulator.analysis.rows import ReadingError
from laststand.emulator.analysis.runs import BrokenRun, BrokenRunsError, OnBroken, Runs, read_runs
from laststand.emulator.analysis.tables import TABLES_VERSION

__all__ = [
    "TABLES_VERSION",
    "BrokenRun",
    "BrokenRunsError",
    "Keeping",
    "OnBroken",
    "ReadingError",
    "Runs",
    "read_runs",
]
