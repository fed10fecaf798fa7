"""The first start of a ZooKeeper server, played by a program of this test in the place of Java."""

import sys
from pathlib import Path

import pytest

from laststand.emulator.cluster.zookeeper_program import ZooKeeperProgram
from laststand.emulator.cluster.zookeeper_trial import ZooKeeperTrialError, tried

SERVES = """
import signal, socket, sys
options = dict(each.split("=", 1) for each in sys.argv if "=" in each)
settings = dict(line.split("=", 1) for line in open(sys.argv[-1]).read().splitlines())
def end(*_):
    open(options["-XX:ArchiveClassesAtExit"], "w").write("classes")
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
listener = socket.create_server(("127.0.0.1", int(settings["clientPort"])))
while True:
    connection, _ = listener.accept()
    if connection.recv(4) == b"srvr":
        connection.sendall(b"Zxid: 0x0")
    connection.close()
"""
FAILS = "import sys; sys.exit('Starting\\nCaused by: java.lang.ClassNotFoundException')"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "laststand"


def program(folder: Path, source: str) -> ZooKeeperProgram:
    java, jar = folder / "java", folder / "zookeeper.jar"
    java.write_text(f"#!{sys.executable}\n{source}")
    java.chmod(0o755)
    jar.touch()
    return ZooKeeperProgram(java=java, class_path=str(jar))


def test_a_server_that_comes_up_leaves_the_archive_of_its_classes(tmp_path: Path, cache: Path) -> None:
    found = tried(program(tmp_path, SERVES))
    assert found.class_archive is not None
    assert found.class_archive.read_text() == "classes"
    assert f"-XX:SharedArchiveFile={found.class_archive}" in found.command(Path("zoo.cfg"))
    assert list(cache.iterdir()) == [found.class_archive]


def test_what_came_up_once_is_not_tried_again(tmp_path: Path, cache: Path) -> None:
    archive = tried(program(tmp_path, SERVES)).class_archive
    assert archive is not None
    archive.write_text("as it was")
    assert tried(ZooKeeperProgram(java=tmp_path / "java", class_path=str(tmp_path / "zookeeper.jar"))) is not None
    assert archive.read_text() == "as it was"
    (tmp_path / "other.jar").touch()
    tried(ZooKeeperProgram(java=tmp_path / "java", class_path=str(tmp_path / "other.jar")))
    assert len(list(cache.iterdir())) == 2


def test_a_server_that_does_not_come_up_is_refused(tmp_path: Path, cache: Path) -> None:
    told = f"the ZooKeeper server in {tmp_path} does not come up: Caused by: java.lang.ClassNotFoundException"
    with pytest.raises(ZooKeeperTrialError) as refused:
        tried(program(tmp_path, FAILS))
    assert str(refused.value) == told
    assert list(cache.iterdir()) == []


def test_without_a_cache_nothing_is_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert tried(program(tmp_path, FAILS)).class_archive is None
