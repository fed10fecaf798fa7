"""A JVM that writes the archive of Spark's classes as it ends may take minutes: users are told at its start."""

from pathlib import Path

import pytest

from laststand.emulator.verification.spark import session
from laststand.emulator.verification.spark.class_archive import ArchiveUse, ClassArchive
from laststand.emulator.verification.spark.gateway import SparkGateway
from laststand.emulator.verification.spark.java import Java


@pytest.mark.parametrize(
    ("archive_use", "is_there", "is_told"),
    [(ArchiveUse.WRITE, False, True), (ArchiveUse.WRITE, True, False), (ArchiveUse.READ, False, False)],
)
def test_an_archive_to_be_written_is_announced(
    *,
    archive_use: ArchiveUse,
    is_there: bool,
    is_told: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    class NoJvm(Exception):
        pass

    def refuse(**_: object) -> SparkGateway:
        raise NoJvm

    archive = ClassArchive(tmp_path / "classes.jsa", "here", java_major=25)
    if is_there:
        archive.path.touch()
    monkeypatch.setattr(session, "find_java", lambda: Java(executable=Path("java"), major=25, origin="PATH"))
    monkeypatch.setattr(session, "find_class_archive", lambda _java: archive)
    monkeypatch.setattr(SparkGateway, "start", refuse)
    with pytest.raises(NoJvm):
        session.SparkSessionStarter(log_path=tmp_path / "spark.log", archive_use=archive_use).start()
    assert ("an archive of Spark's classes is written" in capsys.readouterr().err) is is_told
