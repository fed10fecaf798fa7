"""One run with a clock, whose every number can be worked out by hand, and its tables."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from laststand.emulator.analysis import Runs, read_runs
from tests.analysis.stories import failover

Row = dict[str, object]


@pytest.fixture(scope="session")
def failover_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return failover(tmp_path_factory.mktemp("store") / "failover" / "1")


@pytest.fixture(scope="session")
def runs(spark: SparkSession, failover_run: Path) -> Runs:
    return read_runs(spark, [failover_run])


@pytest.fixture(scope="session")
def rows_of() -> Callable[..., list[Row]]:
    """Returns some columns of a DataFrame as dictionaries, ordered by time where there is one."""

    def rows(frame: DataFrame, *names: str) -> list[Row]:
        order = [name for name in ("time_s", "replica") if name in frame.columns]
        ordered = frame.orderBy(*order) if order else frame
        return [row.asDict(recursive=True) for row in ordered.select(*names or ordered.columns).collect()]

    return rows
