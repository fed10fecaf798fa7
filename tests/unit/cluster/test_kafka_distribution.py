"""What is said when a version of Apache Kafka is not installed."""

from pathlib import Path

import pytest

from emulator.cluster.kafka_distribution import find_kafka
from emulator.cluster.kafka_install import KafkaInstallError, install_kafka
from emulator.core.errors import MissingToolError


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_without_any_version_the_one_that_was_played_is_suggested() -> None:
    with pytest.raises(MissingToolError, match=r"no version; laststand kafka install 4\.2\.0 puts it there"):
        find_kafka(None)


def test_a_version_that_was_asked_for_is_suggested_itself() -> None:
    with pytest.raises(MissingToolError, match=r"laststand kafka install 3\.9\.1 puts it there"):
        find_kafka("3.9.1")


def test_what_is_no_version_is_refused_with_the_one_that_was_played() -> None:
    with pytest.raises(KafkaInstallError, match=r"neither a version such as 4\.2\.0, nor a distribution's folder"):
        install_kafka("newest", java=Path("java"))
