"""One Spark session for all tests of this folder, and one verification for all hand-written runs of a module."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from emulator.verification.session import SparkSessionStarter
from emulator.verification.verdict import VerdictReport
from emulator.verification.verify import verify_runs

Judge = Callable[[Mapping[str, Path]], dict[str, VerdictReport]]


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    starter = SparkSessionStarter(log_path=tmp_path_factory.mktemp("spark") / "spark.log", heap_mb=1024)
    yield starter.session()
    starter.stop()


@pytest.fixture(scope="session")
def judge(spark: SparkSession) -> Judge:
    """Verifies named run directories in one go."""

    def judge_all(runs: Mapping[str, Path]) -> dict[str, VerdictReport]:
        return dict(zip(runs, verify_runs(tuple(runs.values()), spark=spark), strict=True))

    return judge_all
