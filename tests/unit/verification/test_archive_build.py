"""The archive of Spark's classes is written once, and never required."""

from pathlib import Path

import pytest

from laststand.emulator.core.errors import MissingToolError
from laststand.emulator.verification import archive_build
from laststand.emulator.verification.archive_build import build_class_archive, main
from laststand.emulator.verification.spark.class_archive import ClassArchive
from laststand.emulator.verification.spark.java import Java


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ClassArchive:
    found = ClassArchive(tmp_path / "spark.jsa", str(tmp_path), java_major=17)
    monkeypatch.setattr(archive_build, "find_java", lambda: Java(executable=Path("java"), major=17, origin="PATH"))
    monkeypatch.setattr(archive_build, "find_class_archive", lambda _java: found)
    return found


class Starter:
    """Writes the archive as its JVM ends, if there is one."""

    def __init__(self, archive: ClassArchive, *, is_written: bool) -> None:
        self._archive = archive
        self._is_written = is_written

    def session(self) -> None:
        """Starts it."""

    def stop(self) -> None:
        """Ends it."""
        if self._is_written:
            self._archive.path.touch()


@pytest.mark.parametrize("is_written", [True, False])
def test_says_whether_there_is_an_archive_then(
    *, is_written: bool, archive: ClassArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive_build, "SparkSessionStarter", lambda **_: Starter(archive, is_written=is_written))
    assert build_class_archive() is is_written


def test_an_archive_that_is_there_stays(archive: ClassArchive, monkeypatch: pytest.MonkeyPatch) -> None:
    archive.path.write_text("classes")
    monkeypatch.setattr(archive_build, "SparkSessionStarter", lambda **_: pytest.fail("a JVM was started"))
    assert build_class_archive()
    assert archive.path.read_text() == "classes"


def test_without_java_setup_goes_on(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def find_java() -> Java:
        raise MissingToolError(tool="java", expected="it on PATH")

    monkeypatch.setattr(archive_build, "find_java", find_java)
    assert main() == 0
    assert "no archive of Spark's classes: " in capsys.readouterr().err
