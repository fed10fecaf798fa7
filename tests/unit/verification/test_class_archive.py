"""The archive of Spark's classes: kept in the user's cache, used where it is there, and never required."""

import os
import sys
from pathlib import Path

import msgspec
import pytest

from laststand.emulator.verification.spark import class_archive
from laststand.emulator.verification.spark.class_archive import ClassArchive, find_class_archive
from laststand.emulator.verification.spark.java import Java

JAVA = Java(executable=Path(sys.executable), major=17, origin="PATH")


def found(cache: Path) -> ClassArchive:
    archive = find_class_archive(JAVA, {"XDG_CACHE_HOME": str(cache)})
    assert archive is not None
    return archive


def written_by_jvm(archive: ClassArchive) -> Path:
    (option,) = (each for each in archive.options_to_write() if each.startswith("-XX:ArchiveClassesAtExit="))
    path = Path(option.partition("=")[2])
    path.write_text("classes")
    return path


def test_what_a_jvm_wrote_is_used_by_the_next(tmp_path: Path) -> None:
    archive = found(tmp_path)
    assert archive.options_to_use() == ()
    written_by_jvm(archive)
    archive.install()
    assert f"-XX:SharedArchiveFile={archive.path}" in found(tmp_path).options_to_use()
    assert list((tmp_path / "laststand").glob("*.jsa")) == [archive.path]


def test_from_java_25_on_it_is_an_ahead_of_time_cache(tmp_path: Path) -> None:
    # The wheel's Java has no archive of its own classes, without which it writes none of others.
    java = msgspec.structs.replace(JAVA, major=25)
    archive = find_class_archive(java, {"XDG_CACHE_HOME": str(tmp_path)})
    assert archive is not None
    (option,) = (each for each in archive.options_to_write() if each.startswith("-XX:AOTCacheOutput="))
    Path(option.partition("=")[2]).write_text("classes")
    archive.install()
    assert f"-XX:AOTCache={archive.path}" in archive.options_to_use()


def test_what_a_jvm_did_not_finish_is_removed(tmp_path: Path) -> None:
    archive = found(tmp_path)
    written_by_jvm(archive)
    archive.drop()
    assert list((tmp_path / "laststand").iterdir()) == []


def test_a_jvm_that_wrote_nothing_leaves_no_archive(tmp_path: Path) -> None:
    archive = found(tmp_path)
    archive.install()
    assert not archive.is_there


def test_another_java_has_another_archive(tmp_path: Path) -> None:
    other = find_class_archive(msgspec.structs.replace(JAVA, major=25), {"XDG_CACHE_HOME": str(tmp_path)})
    assert other is not None
    assert other.path != found(tmp_path).path


def test_another_environment_has_another_archive_and_one_that_is_gone_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = []
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        monkeypatch.setattr(class_archive, "spark_home", lambda place=tmp_path / name: place)
        archive = found(tmp_path)
        written_by_jvm(archive)
        archive.install()
        kept.append(archive.path)
    assert sorted((tmp_path / "laststand").glob("*.jsa")) == sorted(kept)
    (tmp_path / "here").rmdir()
    written_by_jvm(archive)
    archive.install()
    assert list((tmp_path / "laststand").glob("*.jsa")) == [archive.path]


def test_it_is_in_the_home_directory_where_no_cache_is_named(tmp_path: Path) -> None:
    archive = find_class_archive(JAVA, {"HOME": str(tmp_path)})
    assert archive is not None
    assert archive.path.parent == tmp_path / ".cache" / "laststand"


def test_there_is_none_without_a_cache_that_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert find_class_archive(JAVA, {"XDG_CACHE_HOME": str(tmp_path / "file")}) is None
    assert find_class_archive(JAVA, {}) is None


def test_jars_that_are_installed_again_are_other_jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A JVM refuses an archive, and says nothing of it, where a jar is younger than when the archive was written.
    jar = tmp_path / "pyspark/jars/spark-core.jar"
    jar.parent.mkdir(parents=True)
    monkeypatch.setattr(class_archive, "spark_home", lambda: tmp_path / "pyspark")
    archives = []
    for installed in (1_000, 2_000):
        jar.write_text("classes")
        os.utime(jar, (installed, installed))
        archive = found(tmp_path)
        assert not archive.is_there
        written_by_jvm(archive)
        archive.install()
        assert found(tmp_path).is_there
        archives.append(archive.path)
    assert archives[0] != archives[1]
    assert list((tmp_path / "laststand").glob("*.jsa")) == [archives[1]]
