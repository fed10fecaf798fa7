"""Messages about a version of Apache Kafka that is not installed, and the tools that install it."""

import re
from pathlib import Path

import pytest

from laststand.emulator.cluster import kafka_install, kafka_jars
from laststand.emulator.cluster.kafka_distribution import PLAYED_VERSION, find_kafka
from laststand.emulator.cluster.kafka_install import KafkaInstallError, install_kafka
from laststand.emulator.cluster.kafka_jars import is_known_version
from laststand.emulator.core.errors import MissingToolError


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


def test_without_maven_and_ivy_the_ways_to_install_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(kafka_install, "find_spec", lambda _: None)
    with pytest.raises(MissingToolError, match=r"expected Maven on PATH, PySpark, .* laststand kafka install FOLDER"):
        install_kafka("4.2.0", java=Path("java"))


def test_without_maven_ivy_is_asked_for_the_jars_with_the_users_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = tmp_path / "java"
    java.write_text('#!/bin/sh\necho "ERROR asked: $*"\nexit 1\n', encoding="utf-8")
    java.chmod(0o700)
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.setenv("LASTSTAND_IVY_SETTINGS", "mirror.xml")
    with pytest.raises(KafkaInstallError) as raised:
        install_kafka("4.2.0", java=java)
    assert raised.value.step == "Ivy, Kafka 4.2.0"
    for asked in ("-jar", "/ivy-", "-settings mirror.xml", "-confs default -types jar bundle", "/jars/[artifact]-"):
        assert asked in raised.value.reason


def test_of_what_ivy_prints_the_line_with_the_reason_is_reported() -> None:
    printed = ":: problems summary ::\n\t\tmodule not found: org.apache.kafka#kafka_2.13;9.9.9\n:::: ERRORS\n\tmore\n"
    error = KafkaInstallError(step="Ivy, Kafka 9.9.9", output=printed)
    assert str(error) == "Ivy, Kafka 9.9.9: module not found: org.apache.kafka#kafka_2.13;9.9.9"


def jars_by(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Maven is a script that brings empty jars of these names."""
    maven = tmp_path / "mvn"
    touch = "; ".join(f'/usr/bin/touch "$folder/{name}"' for name in names)
    find = "for word; do case $word in -DoutputDirectory=*) folder=${word#*=};; esac; done"
    maven.write_text(f'#!/bin/sh\n{find}\n/bin/mkdir -p "$folder"; {touch}\n', encoding="utf-8")
    maven.chmod(0o700)
    monkeypatch.setattr("shutil.which", lambda _: str(maven))


def test_a_jar_that_is_not_the_published_one_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jars_by(tmp_path, monkeypatch, "kafka-clients-4.2.0.jar")
    with pytest.raises(
        KafkaInstallError, match=r"kafka-clients-4\.2\.0\.jar is not what was published, by its SHA-256"
    ):
        install_kafka("4.2.0", java=Path("java"))
    assert not (tmp_path / "laststand/kafka/4.2.0").exists()


def test_a_jar_that_a_known_version_does_not_have_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jars_by(tmp_path, monkeypatch, "stranger-1.0.jar")
    with pytest.raises(KafkaInstallError, match=r"it brought stranger-1\.0\.jar, which this version does not need"):
        install_kafka("4.2.0", java=Path("java"))


def test_every_jar_of_the_version_that_was_played_has_a_checksum() -> None:
    assert is_known_version(PLAYED_VERSION)
    lines = Path(kafka_jars.__file__).with_suffix(".sha256").read_text().splitlines()
    names = [line.split("  ")[1] for line in lines]
    assert all(re.fullmatch(r"[0-9a-f]{64}  [\w.+-]+\.jar", line) for line in lines)
    assert len(set(names)) == len(names) > 46
