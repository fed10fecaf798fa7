"""Verifies runs in the Spark session that ``spark-submit`` gives, on a cluster that is there already (docs/scale.md).

::

    spark-submit --master yarn verify.py /shared/store/one /shared/store/two

Each run's verdict.json and junit.xml are written when it is judged. Exit code: 1 if any is a violation, else 2 if any
is unknown, or could not be judged, else 0.
"""

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from laststand.emulator.core.errors import EmulatorError
from laststand.emulator.verification.reading.run_directory import find_runs
from laststand.emulator.verification.spark.executors import is_local, prepare_executors
from laststand.emulator.verification.verdict.forms import write_verdict
from laststand.emulator.verification.verdict.report import Verdict, VerdictReport
from laststand.emulator.verification.verify import verify_runs


def main(names: Sequence[str]) -> int:
    """Verifies the runs of these directories, and returns the exit code."""
    runs = [run for name in names for run in find_runs(Path(name))]
    spark = SparkSession.builder.appName("laststand").getOrCreate()

    def keep(number: int, report: VerdictReport) -> None:
        write_verdict(report, runs[number])
        print(f"{report.run}: {report.verdict.value}", flush=True)  # noqa: T201 - what it is for

    try:
        with tempfile.TemporaryDirectory() as directory:
            if not is_local(str(spark.sparkContext.master)):
                prepare_executors(spark, Path(directory), imported="laststand.emulator.verification.judge")
            reports = verify_runs(runs, spark=spark, on_report=keep)
    except (EmulatorError, OSError) as error:
        print(f"unknown: {error}", file=sys.stderr)  # noqa: T201 - likewise
        return 2
    finally:
        spark.stop()
    verdicts = {report.verdict for report in reports}
    if Verdict.VIOLATION in verdicts:
        return 1
    return 2 if Verdict.UNKNOWN in verdicts else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
