"""Puts a version of Apache Kafka into the user's cache: its jars, formatted log directories, an archive of its classes.

Jars come from Maven's central repository by their coordinates, through the user's ``mvn`` and its settings, or without
``mvn`` through the Ivy of PySpark, which needs only Java; or from a distribution that the user has unpacked. Downloaded
jars must have the known SHA-256 (``kafka_jars.py``). A version appears under its name when its jars and directories are
complete; the archive, which only speeds up starts, is made in place, because it holds the jars' paths.
"""

import asyncio
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from laststand.emulator.cluster.child import ProcessSpec
from laststand.emulator.cluster.kafka_distribution import JVM_OPTIONS, PLAYED_VERSION, KafkaDistribution, kafka_cache
from laststand.emulator.cluster.kafka_jars import check_jars, is_known_version
from laststand.emulator.cluster.kafka_probe import await_kafka
from laststand.emulator.cluster.ports import LOOPBACK, ReservedPort
from laststand.emulator.cluster.supervisor import Supervisor
from laststand.emulator.core.errors import EmulatorError, MissingToolError

_LOGGING: Final = "1.7.36"
"""The logging of ``slf4j-simple``, for the ``slf4j-api`` that all known versions use."""

_POM: Final = """<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>laststand</groupId><artifactId>kafka</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{version}</version></dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>{logging}</version></dependency>
  </dependencies>
</project>
"""
_IVY: Final = """<ivy-module version="2.0">
  <info organisation="laststand" module="kafka"/>
  <dependencies defaultconf="default">
    <dependency org="org.apache.kafka" name="kafka_2.13" rev="{version}"/>
    <dependency org="org.slf4j" name="slf4j-simple" rev="{logging}"/>
  </dependencies>
</ivy-module>
"""
_REASON_MARKS: Final = ("Server access error", "module not found", "ERROR")
"""Words that mark the lines in which Ivy and Maven give a reason, the clearest first."""

_IVY_SETTINGS: Final = "LASTSTAND_IVY_SETTINGS"
"""Names the user's settings file for Ivy, which may have a mirror; Ivy's own are used if not given."""

_OTHER_LOGGING: Final = ("slf4j-reload4j-*.jar", "log4j-slf4j-impl-*.jar")
"""Jars that would log in place of ``slf4j-simple``."""

_ELR_FEATURE: Final = "eligible.leader.replicas.version"
_TEMPLATE_CLUSTER: Final = "AAAAAAAAAAAAAAAAAAAAAA"
_DOWNLOAD_TIMEOUT_S: Final = 900
_STEP_TIMEOUT_S: Final = 180
_NUMBERS: Final = re.compile(r"kafka-clients-(\d+\.\d+\.\d+)\.jar")
_VERSION: Final = re.compile(r"\d+\.\d+\.\d+")


class KafkaInstallError(EmulatorError):
    """Kafka could not be installed.

    Attributes:
        step: the step that failed.
        reason: the reason, in one line.
    """

    def __init__(self, *, step: str, output: str) -> None:
        lines = output.strip().splitlines()
        self.step = step
        reasons = [line.strip() for mark in _REASON_MARKS for line in lines if mark in line]
        self.reason = next(iter(reasons), lines[-1] if lines else "no reason given")
        super().__init__(f"{step}: {self.reason}")


def install_kafka(version: str, *, java: Path) -> KafkaDistribution:
    """Installs a version through Maven or Ivy, and replaces an installed one.

    Raises:
        MissingToolError: there is neither.
        KafkaInstallError: there is no such version, a jar has another checksum, or Kafka does not start.
    """
    if not _VERSION.fullmatch(version):
        expected = f"neither a version such as {PLAYED_VERSION}, nor a distribution's folder"
        raise KafkaInstallError(step=version, output=expected)
    maven, ivy = shutil.which("mvn"), _find_ivy()
    if maven is None and ivy is None:
        expected = "Maven on PATH, PySpark, which brings Ivy, or a distribution: laststand kafka install FOLDER"
        raise MissingToolError(tool="mvn", expected=expected)
    with _new_folder() as name, tempfile.TemporaryDirectory() as scratch:
        made, folder = Path(name), Path(scratch)
        if maven is not None:
            command = _maven_command(maven, version, folder, jars=made / "jars")
        else:
            command = (str(java), "-jar", str(ivy), *_ivy_arguments(version, folder, jars=made / "jars"))
        tool = "mvn" if maven is not None else "Ivy"
        _run(command, step=f"{tool}, Kafka {version}", timeout_s=_DOWNLOAD_TIMEOUT_S)
        _require_published(made / "jars", version, step=f"{tool}, Kafka {version}")
        return _finish(made, version, java=java)


def _find_ivy() -> Path | None:
    """Finds the Ivy with which Spark resolves its ``--packages``."""
    spark = find_spec("pyspark")
    places = spark.submodule_search_locations if spark is not None else None
    return next((jar for place in places or () for jar in Path(place).glob("jars/ivy-*.jar")), None)


def _maven_command(maven: str, version: str, folder: Path, *, jars: Path) -> tuple[str, ...]:
    pom = folder / "pom.xml"
    pom.write_text(_POM.format(version=version, logging=_LOGGING), encoding="utf-8")
    copy = ("dependency:copy-dependencies", f"-DoutputDirectory={jars}", "-DincludeScope=runtime")
    return (maven, "-B", "-q", "-f", str(pom), *copy)


def _ivy_arguments(version: str, folder: Path, *, jars: Path) -> tuple[str, ...]:
    module = folder / "ivy.xml"
    module.write_text(_IVY.format(version=version, logging=_LOGGING), encoding="utf-8")
    settings = os.environ.get(_IVY_SETTINGS)
    return (
        *(() if settings is None else ("-settings", settings)),
        *("-cache", str(folder / "cache"), "-ivy", str(module), "-confs", "default", "-types", "jar", "bundle"),
        *("-retrieve", f"{jars}/[artifact]-[revision](-[classifier]).[ext]"),
    )


def install_distribution(distribution: Path, *, java: Path) -> KafkaDistribution:
    """Installs the jars of an unpacked distribution, and replaces its installed version.

    Raises:
        KafkaInstallError: the folder is not a distribution, or it does not start.
    """
    libraries = distribution / "libs"
    found = [match[1] for path in libraries.glob("kafka-clients-*.jar") if (match := _NUMBERS.fullmatch(path.name))]
    if not found:
        raise KafkaInstallError(step=str(distribution), output="no distribution: it has no libs/kafka-clients-*.jar")
    with _new_folder() as name:
        shutil.copytree(libraries, Path(name) / "jars")
        return _finish(Path(name), found[0], java=java)


def _require_published(jars: Path, version: str, *, step: str) -> None:
    checked = check_jars(jars)
    if checked.changed:
        output = f"{checked.changed[0]} is not what was published, by its SHA-256; nothing was installed"
        raise KafkaInstallError(step=step, output=output)
    if checked.unknown and is_known_version(version):
        output = f"it brought {checked.unknown[0]}, which this version does not need; nothing was installed"
        raise KafkaInstallError(step=step, output=output)


def _new_folder() -> "tempfile.TemporaryDirectory[str]":
    kafka_cache().mkdir(parents=True, exist_ok=True)
    return tempfile.TemporaryDirectory(prefix="install-", dir=kafka_cache(), ignore_cleanup_errors=True)


def _finish(made: Path, version: str, *, java: Path) -> KafkaDistribution:
    for pattern in _OTHER_LOGGING:
        for jar in (made / "jars").glob(pattern):
            jar.unlink()
    unfinished = KafkaDistribution(version=version, folder=made)
    levels = {"elr-off": ("--feature", f"{_ELR_FEATURE}=0"), "elr-on": ("--feature", f"{_ELR_FEATURE}=1")}
    for folder, options in levels.items() if unfinished.has_elr else [("elr-off", ())]:
        _format(unfinished, made / folder, options, java=java)
    installed = KafkaDistribution(version=version, folder=kafka_cache() / version)
    if installed.folder.exists():
        shutil.rmtree(installed.folder)
    made.rename(installed.folder)
    asyncio.run(_archive_classes(installed, java=java))
    return installed


def _format(kafka: KafkaDistribution, directory: Path, options: Sequence[str], *, java: Path) -> None:
    """Formats the log directory of a controller, of which only the bootstrap records are kept."""
    with tempfile.TemporaryDirectory() as scratch:
        properties = Path(scratch) / "server.properties"
        properties.write_text(_single_node(directory, broker_port=9092, controller_port=9093), encoding="utf-8")
        tool = ("kafka.tools.StorageTool", "format", "-t", _TEMPLATE_CLUSTER, "-c", str(properties))
        _run(
            (str(java), "-cp", kafka.class_path, *JVM_OPTIONS, *tool, *options),
            step=f"Kafka {kafka.version}, format",
            timeout_s=_STEP_TIMEOUT_S,
        )


async def _archive_classes(kafka: KafkaDistribution, *, java: Path) -> None:
    """Starts a broker and controller in one process, and archives the classes that it had loaded when it ends."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        broker, controller = ReservedPort(), ReservedPort()
        broker.lend()
        controller.lend()
        jvm = (str(java), "-cp", kafka.class_path, *JVM_OPTIONS)
        properties, archive = folder / "server.properties", kafka.class_archive.with_suffix(".new")
        text = _single_node(folder / "data", broker_port=broker.number, controller_port=controller.number)
        properties.write_text(text, encoding="utf-8")
        _run(
            (*jvm, "kafka.tools.StorageTool", "format", "-t", _TEMPLATE_CLUSTER, "-c", str(properties)),
            step=f"Kafka {kafka.version}, format",
            timeout_s=_STEP_TIMEOUT_S,
        )
        async with Supervisor() as supervisor:
            server = await supervisor.start(
                ProcessSpec(
                    name="kafka",
                    argv=(*jvm, f"-XX:ArchiveClassesAtExit={archive}", "kafka.Kafka", str(properties)),
                    stderr_path=folder / "node.log",
                    exits_with_signal_number=True,
                )
            )
            is_up = await await_kafka(
                broker.address, has_ended=lambda: server.end is not None, timeout_s=_STEP_TIMEOUT_S
            )
            end = await server.stop(timeout_s=_STEP_TIMEOUT_S)
        if not is_up:
            raise KafkaInstallError(step=f"Kafka {kafka.version} does not start", output="\n".join(end.stderr_tail))
        if archive.exists():
            archive.replace(kafka.class_archive)
        broker.close()
        controller.close()


def _single_node(data: Path, *, broker_port: int, controller_port: int) -> str:
    return f"""process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://{LOOPBACK}:{broker_port},CONTROLLER://{LOOPBACK}:{controller_port}
controller.listener.names=CONTROLLER
controller.quorum.voters=1@{LOOPBACK}:{controller_port}
log.dirs={data}
log.cleaner.dedupe.buffer.size=2097152
"""


def _run(command: Sequence[str], *, step: str, timeout_s: float) -> None:
    try:
        subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout_s,
            text=True,
            check=True,
        )
    except subprocess.CalledProcessError as error:
        raise KafkaInstallError(step=step, output=error.stdout) from error
    except subprocess.TimeoutExpired as error:
        raise KafkaInstallError(step=step, output=f"no end after {timeout_s:g} s") from error
