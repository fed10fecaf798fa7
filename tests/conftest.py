"""What all tests share: their options, a Spark session, and who runs beside whom.

With several workers (``pytest -n 4``) the modules that use a Spark session go to one of them, those that start clusters
and use one to another, the commands of the documents to a third, other clusters to whoever is free first, and each
other module to whoever is free then. So there are three sessions at most, and few clusters compete for the machine.
"""

import contextlib
import gc
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SESSION_MODULES: Final = (
    "tests/analysis/",
    "tests/verification/",
    "tests/cluster/test_documented_commands.py",
    "tests/cluster/test_kafka.py",
    "tests/cluster/test_replayed_plans.py",
    "tests/cluster/test_scenarios.py",
    "tests/cluster/test_story.py",
    "tests/cluster/test_zookeeper_story.py",
)
CLUSTER_MODULES: Final = ("tests/cluster/",)
DOCKER_MODULES: Final = ("tests/docker/",)
COMMAND_MODULES: Final = (
    "tests/cluster/test_documented_commands.py",
    "tests/cluster/test_pytest_plugin.py",
    "tests/cluster/test_suite.py",
)

# A busy machine is no reason to fail: speed is measured in benchmarks.
settings.register_profile("tests", deadline=None, suppress_health_check=(HealthCheck.too_slow,))
settings.load_profile("tests")

# Modules and tests stay to the end: to look for garbage among them, or as often as by default, only takes time.
gc.set_threshold(20_000, 20, 20)


class Scheduling(LoadScopeScheduling):
    """Hands out whole modules, or groups of them."""

    def _split_scope(self, nodeid: str) -> str:
        module = nodeid.partition("::")[0]
        if module.startswith(COMMAND_MODULES):
            return "commands"
        if module.startswith(DOCKER_MODULES):
            return "containers"
        is_cluster = module.startswith(CLUSTER_MODULES)
        if module.startswith(SESSION_MODULES):
            return "clusters with a session" if is_cluster else "session"
        return "cluster" if is_cluster else module


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="rewrite the expected text of the interaction scripts")


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling:
    config.option.loadscopereorder = False  # the groups take longest, and come first
    return Scheduling(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    using = [item.nodeid for item in items if "spark" in getattr(item, "fixturenames", ())]
    if unlisted := [nodeid for nodeid in using if not nodeid.startswith(SESSION_MODULES)]:
        raise pytest.UsageError(f"SESSION_MODULES in tests/conftest.py lacks the module of {unlisted[0]}")
    # One worker has all of them, for long: whoever begins with them late is the last to end.
    items.sort(key=lambda item: not item.nodeid.startswith(DOCKER_MODULES))


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

    starter = SparkSessionStarter(log_path=tmp_path_factory.mktemp("spark") / "spark.log")
    yield starter.session()
    starter.stop()


@pytest.fixture
def one_session(spark: "SparkSession", monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives verbs of the command line the session of the tests: there is one per process."""
    from laststand.chaos import campaign
    from laststand.emulator.verification.spark import session

    class Starter:
        def __init__(self, **_: object) -> None:
            pass

        def start(self) -> None:
            pass

        def stop(self) -> None:
            pass

        @contextlib.contextmanager
        def at_work(self) -> "Iterator[SparkSession]":
            yield spark

    monkeypatch.setattr(session, "SparkSessionStarter", Starter)
    monkeypatch.setattr(campaign, "SparkSessionStarter", Starter)
