"""Places from which ZooKeeper's server is taken."""

from pathlib import Path

import pytest

from laststand.emulator.cluster.zookeeper_program import FOLDER_VARIABLE, find_zookeeper
from laststand.emulator.core.errors import MissingToolError

JAVA = Path("java")
NEEDED = ("zookeeper", "zookeeper-jute", "metrics-core", "slf4j-api", "snappy-java")


def put(folder: Path, *names: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / f"{name}.jar").touch()


def names_on_the_class_path(java: Path = JAVA) -> list[str]:
    return [Path(jar).name for jar in find_zookeeper(java).class_path.split(":")]


def test_pysparks_wheel_brings_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(FOLDER_VARIABLE, raising=False)
    assert names_on_the_class_path()[0].startswith("zookeeper-3.")


@pytest.mark.parametrize("place", ["", "lib"])
def test_jars_of_a_distribution_are_taken_where_their_folder_is_named(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / place, *(f"{name}-1.2.3" for name in NEEDED))
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    assert names_on_the_class_path() == [f"{name}-1.2.3.jar" for name in NEEDED]


def test_jars_of_a_system_package_have_no_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, *NEEDED, "zookeeper-it", "zookeeper-contrib-loggraph")
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    assert names_on_the_class_path() == [f"{name}.jar" for name in NEEDED]


def test_a_folder_without_zookeeper_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, *NEEDED[1:])
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    with pytest.raises(MissingToolError, match=rf"expected zookeeper\.jar in {tmp_path}"):
        find_zookeeper(JAVA)
