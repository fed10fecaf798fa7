"""Parts that all tests share: their options, a Spark session, runs of the bundled scenarios, and who runs beside whom.

With several workers (``pytest -n 4``) modules are handed out one after the other, those that take longest first: what
starts clusters mostly waits, and what computes fills the time. Modules that use a Spark session go to one of two
workers with all their like, so that there are two sessions at most; modules whose tests have nothing in common are
handed out test by test, so that nobody waits at the end for the last of them.
"""

import contextlib
import gc
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from tests.budget import Meter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.library import Library

WITH_SESSION: Final = (
    "batch",
    "fleet",
    "fuzz",
    "hadoop_runs",
    "judges",
    "spark_slices",
    "spark_sweep",
)
"""Modules of ``tests/verification`` that use the session of the tests."""

GROUPS: Final = {
    "containers": ("tests/docker/",),
    "clusters with a session": ("tests/cluster/test_documented_commands.py", "tests/cluster/test_scenarios.py"),
    "session": ("tests/analysis/", *(f"tests/verification/test_{name}.py" for name in WITH_SESSION)),
}
"""Modules of which one worker has all: of containers, as they share images, and of each of two Spark sessions."""

SPLIT: Final = (
    "tests/simulation/",
    "tests/verification/test_oracles_agree.py",
    "tests/verification/test_packed_runs.py",
    "tests/verification/test_slices.py",
)
"""Modules of which each test is handed out alone."""

FIRST: Final = (
    *(prefix for prefixes in GROUPS.values() for prefix in prefixes),
    "tests/verification/test_standalone_cluster.py",
    "tests/cluster/test_kafka.py",
    "tests/cluster/test_story.py",
    "tests/cluster/test_interruption.py",
    "tests/cluster/",
    "tests/packaging/",
    "tests/verification/",
    "tests/browser/",
    "tests/mutants/",
    "tests/simulation/",
)
"""Modules that take long, longest first; then comes everything else."""

SPARK_OF_FEW_ROWS: Final = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
}
"""To compile each query takes most of its time here. Sessions with the settings of users are those of processes."""

FILES_PASSED_OVER: Final = {"spark.sql.files.ignoreMissingFiles": "true", "spark.sql.files.ignoreCorruptFiles": "true"}
"""A user may ask for that; no session does it."""

# As in the Makefile: else each process that a test starts compiles again whatever it imports.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A busy machine is no reason to fail: speed is measured in benchmarks.
settings.register_profile("tests", deadline=None, suppress_health_check=(HealthCheck.too_slow,))
# `make soak` passes --hypothesis-profile=soak.
settings.register_profile("soak", settings.get_profile("tests"), max_examples=5000)
settings.load_profile("tests")

# Modules and tests stay to the end: to look for garbage among them, or as often as by default, only takes time.
gc.set_threshold(20_000, 20, 20)


class Scheduling(LoadScopeScheduling):
    """Hands out groups of modules, modules, or tests."""

    def _split_scope(self, nodeid: str) -> str:
        module = nodeid.partition("::")[0]
        group = next((name for name, prefixes in GROUPS.items() if module.startswith(prefixes)), None)
        return group or (nodeid if module.startswith(SPLIT) else module)


def rank(nodeid: str) -> int:
    """Returns when a test is handed out, by where it is."""
    return next((number for number, prefix in enumerate(FIRST) if nodeid.startswith(prefix)), len(FIRST))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="rewrite the expected text of the interaction scripts")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Meter(), "meter")


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling:
    config.option.loadscopereorder = False  # the groups take longest, and come first
    return Scheduling(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    using = [item.nodeid for item in items if "spark" in getattr(item, "fixturenames", ())]
    listed = (*GROUPS["session"], *GROUPS["clusters with a session"])
    if unlisted := [nodeid for nodeid in using if not nodeid.startswith(listed)]:
        raise pytest.UsageError(f"GROUPS in tests/conftest.py lacks the module of {unlisted[0]}")
    items.sort(key=lambda item: rank(item.nodeid))


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _verdicts_are_as_published(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Every ``verdict.json`` that the tests leave behind is what the published schema says."""
    yield
    from tests.verdict_files import check_files

    assert list(check_files(tmp_path_factory.getbasetemp())) == []


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[SparkSession]":
    """The session of all tests; its JVM is idle while nothing is verified."""
    from laststand.emulator.verification.spark.session import SparkSessionStarter  # most tests need no Spark

    log_path = tmp_path_factory.mktemp("spark") / "spark.log"
    starter = SparkSessionStarter(log_path=log_path, conf={**SPARK_OF_FEW_ROWS, **FILES_PASSED_OVER})
    yield starter.session()
    starter.stop()


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> "Library":
    """The bundled scenarios in virtual time, each played once for all workers."""
    from tests.library import Library  # most tests need none of it

    base = tmp_path_factory.getbasetemp()
    return Library((base.parent if hasattr(request.config, "workerinput") else base) / "library")


@pytest.fixture
def judged_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has ``StandingCluster.verify`` judge without Spark; ``tests/cluster/test_pytest_plugin.py`` has a session."""
    from laststand import standing_cluster
    from laststand.emulator.verification.verify import verify_runs

    monkeypatch.setattr(standing_cluster, "judge", lambda directories, **_: verify_runs(directories, spark=None))


@pytest.fixture
def one_session(spark: "SparkSession", monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives verbs of the command line the session of the tests: there is one per process."""
    from laststand.chaos import campaign
    from laststand.emulator.verification.spark import session

    class Starter:
        master = spark.sparkContext.master

        def __init__(self, **_: object) -> None:
            pass

        def start(self) -> None:
            pass

        hurry = start

        def stop(self) -> None:
            pass

        @contextlib.contextmanager
        def at_work(self) -> "Iterator[SparkSession]":
            yield spark

        tasks_at_work = at_work

    monkeypatch.setattr(session, "SparkSessionStarter", Starter)
    monkeypatch.setattr(campaign, "SparkSessionStarter", Starter)
