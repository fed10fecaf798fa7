"""The JVM of Spark, started and ended by this process.

PySpark starts its JVM through two shell scripts and a second JVM that only composes a command line. Until the JVM is
up, none of these processes notices that Python has died, and they keep a whole core busy. So the command is composed
here, and the JVM dies with this process (``laststand.emulator.parent_death``); PySpark then connects to it as to a
running gateway (``PYSPARK_GATEWAY_PORT`` and ``PYSPARK_GATEWAY_SECRET``, ``pyspark/java_gateway.py``)::

    gateway = SparkGateway.start(java=find_java(), log_path=..., heap_mb=1024)  # main thread, returns at once
    ...                                                                         # nodes run meanwhile
    gateway.hurry()                                                             # the nodes are gone
    gateway.attach(timeout_s=60)                                                # any thread
    session = SparkSession.builder.master("local[2]").getOrCreate()

The JVM reports port and secret in a file whose name it gets in the environment: a four-byte big-endian port, the
secret's length in four bytes, the secret. It also ends by itself when its standard input is closed.
"""

import contextlib
import importlib.util
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time
from enum import Enum
from pathlib import Path

from laststand.emulator.core.errors import EmulatorError, InvariantError, MissingToolError
from laststand.emulator.parent_death import die_with_parent
from laststand.emulator.verification.spark.java import Java
from laststand.emulator.verification.spark.stopped_processes import LOOK_INTERVAL_S, LOOKS_MAX, watch_for_stopped

_FOREIGN_JARS = (
    "datanucleus-",
    "derby",
    "hive-",
    "kubernetes-",
    "spark-hive",
    "spark-kubernetes",
    "spark-mllib",
    "spark-yarn",
    "vertx-",
    "volcano-",
)
"""Begins of names of jars that verification and queries on this machine do not need. Java looks for missing files in
each jar, and MLlib adds functions to every session, which takes half a second of a core."""

PACKAGES_OPENED = (
    "java.base/java.lang",
    "java.base/java.lang.invoke",
    "java.base/java.lang.reflect",
    "java.base/java.io",
    "java.base/java.net",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch",
    "java.base/sun.nio.cs",
    "java.base/sun.security.action",
    "java.base/sun.util.calendar",
    "java.security.jgss/sun.security.krb5",
)
"""Packages that Spark reaches into (Spark's ``JavaModuleOptions``). Its incubator vector module is left out: the
wheel's Java lacks it, and Spark only uses it for linear algebra."""

SHORT_LIVED = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    "-XX:TieredStopAtLevel=1",
    # The 48 MiB code cache of a single compiler fills up after a few hundred queries, and then compilation stops.
    "-XX:ReservedCodeCacheSize=256m",
    "-XX:+UseSerialGC",
    "-XX:-UsePerfData",
)
"""Options of a JVM that lives for seconds: its start costs more than its work."""

_OPTIONS = (
    *SHORT_LIVED,
    "-Dio.netty.tryReflectionSetAccessible=true",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
)
_NICE = 5
"""Enough for the nodes to come first. More would be a trap: an ordinary user cannot take it back, and on a machine that
is busy with something else the JVM would hardly run at all."""
_POLL_INTERVAL_S = 0.02


class Jars(Enum):
    """The choice of Spark's jars that a JVM gets."""

    NEEDED = "needed"
    """The jars that verification and queries on this machine need."""

    ALL = "all"
    """Also the jars of clusters, of Hive and of MLlib."""


class GatewayError(EmulatorError):
    """The JVM ended or did not report in time.

    Attributes:
        reason: the cause in words.
        log_path: file with the output of the JVM.
    """

    def __init__(self, *, reason: str, log_path: Path) -> None:
        super().__init__(f"Spark's JVM {reason}; see {log_path}")
        self.reason = reason
        self.log_path = log_path


class SparkGateway:
    """One JVM that serves this process's Spark session. A process has at most one at a time."""

    def __init__(self, *, process: subprocess.Popen[bytes], directory: Path, log_path: Path) -> None:
        """Use ``SparkGateway.start``."""
        self._process = process
        self._directory = directory
        self._log_path = log_path
        self._is_over = threading.Event()
        self._stopped: int | None = None
        watch_for_stopped(process.pid, is_over=self._is_over, on_stopped=self._end_stopped)

    def _end_stopped(self, pid: int) -> None:
        """Kills a JVM that was stopped (SIGSTOP), so that callers that wait for it see that it has ended."""
        self._stopped = pid
        self._process.kill()

    @classmethod
    def start(
        cls,
        *,
        java: Java,
        log_path: Path,
        heap_mb: int,
        options: tuple[str, ...] = (),
        submitted: tuple[str, ...] = (),
        address: str | None = "127.0.0.1",
        work_directory: Path | None = None,
        jars: Jars = Jars.NEEDED,
    ) -> "SparkGateway":
        """Start the JVM and return at once; it needs seconds of a core, which it takes at a low priority.

        Args:
            java: from ``find_java``.
            log_path: file for the JVM's output; its directory must exist.
            heap_mb: upper bound of the Java heap, in MiB.
            options: further ones for the JVM.
            submitted: options as ``spark-submit`` has them: a cluster's master and settings.
            address: of this machine, that Spark listens at; Spark's own choice if ``None``.
            work_directory: directory for temporary files; the system's if ``None``.
            jars: the jars of Spark in the class path.

        Raises:
            MissingToolError: pyspark is not installed.
            InvariantError: not called from the main thread; the JVM dies with the thread that starts it.
        """
        if threading.current_thread() is not threading.main_thread():
            raise InvariantError("a process that dies with its parent is started from the main thread only")
        home = spark_home()
        directory = Path(tempfile.mkdtemp(prefix="laststand-spark-", dir=work_directory))
        environment = {
            **os.environ,
            "SPARK_HOME": str(home),
            # Python workers start in the working directory, which is the user's: nothing is imported from there.
            "PYTHONSAFEPATH": "1",
            **({} if address is None else {"SPARK_LOCAL_IP": address}),
            "SPARK_CONNECT_MODE": "0",
            "_PYSPARK_DRIVER_CONN_INFO_PATH": str(directory / "connection"),
        }
        with log_path.open("ab") as log:
            process = subprocess.Popen(
                die_with_parent(
                    [
                        # Its files are removed with the directory, so its own cleaning need not be awaited.
                        *_command(
                            java=java,
                            class_path=class_path(home, jars),
                            heap_mb=heap_mb,
                            options=(f"-Djava.io.tmpdir={directory}", *options),
                        ),
                        *submitted,
                        "pyspark-shell",
                    ]
                ),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=environment,
                process_group=0,  # Ctrl-C is for the owner, which ends the JVM in order
            )
        # Before the JVM has threads: threads inherit the priority.
        os.setpriority(os.PRIO_PROCESS, process.pid, os.getpriority(os.PRIO_PROCESS, 0) + _NICE)
        return cls(process=process, directory=directory, log_path=log_path)

    @property
    def directory(self) -> Path:
        """Directory for files that are needed only as long as the JVM runs."""
        return self._directory

    @property
    def pid(self) -> int:
        """The JVM's process id."""
        return self._process.pid

    def exit_code(self, *, within_s: float = 0.0) -> int | None:
        """Return the JVM's exit code, ``None`` if it still runs after ``within_s`` seconds."""
        try:
            return self._process.wait(timeout=within_s)
        except subprocess.TimeoutExpired:
            return None

    def end_in_words(self, exit_code: int) -> str:
        """Return how the JVM ended, as the predicate of a sentence about it."""
        if self._stopped is None:
            return f"ended with {exit_code}"
        who = "it" if self._stopped == self.pid else f"its process {self._stopped}"
        return (
            f"was ended, as {who} had been stopped (SIGSTOP) and did not go on for {LOOKS_MAX * LOOK_INTERVAL_S:.0f} s"
        )

    def attach(self, *, timeout_s: float) -> None:
        """Wait until the JVM listens, and make the next Spark session of this process use it.

        Raises:
            GatewayError: the JVM ended, or did not listen within ``timeout_s`` seconds.
        """
        connection = self._directory / "connection"
        deadline = time.monotonic() + timeout_s
        while not connection.exists():
            if self._process.poll() is not None:
                raise GatewayError(reason=self.end_in_words(self._process.returncode), log_path=self._log_path)
            if time.monotonic() > deadline:
                raise GatewayError(reason=f"did not listen within {timeout_s} s", log_path=self._log_path)
            time.sleep(_POLL_INTERVAL_S)
        raw = connection.read_bytes()
        port, length = struct.unpack_from(">ii", raw)
        os.environ["PYSPARK_GATEWAY_PORT"] = str(port)
        os.environ["PYSPARK_GATEWAY_SECRET"] = raw[8 : 8 + length].decode()
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

    def hurry(self) -> None:
        """Give the JVM the priority of this process again, if the system allows that (root, or ``RLIMIT_NICE``)."""
        priority = os.getpriority(os.PRIO_PROCESS, 0)
        for thread in Path(f"/proc/{self.pid}/task").glob("*"):
            with contextlib.suppress(PermissionError, ProcessLookupError):
                os.setpriority(os.PRIO_PROCESS, int(thread.name), priority)

    def stop(self, *, timeout_s: float = 0.0) -> None:
        """End the JVM, by force after ``timeout_s`` seconds, and remove its leftovers. Safe to call twice.

        ``detach`` follows this: a thread that is about to make a session would start another JVM without it.
        """
        self._is_over.set()
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self._directory, ignore_errors=True)

    def detach(self) -> None:
        """Make the next Spark session of this process start its own JVM. Safe to call twice."""
        for name in ("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"):
            os.environ.pop(name, None)


def spark_home() -> Path:
    """Returns the directory of the pyspark that is installed.

    Raises:
        MissingToolError: none is.
    """
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise MissingToolError(tool="pyspark", expected="the package of that name, as the extra 'verify' installs it")
    return Path(spec.origin).parent


def class_path(home: Path, jars: Jars) -> str:
    """Returns Java's class path; the path of all jars begins with the path of the needed ones.

    So an archive for the needed jars fits both: a JVM accepts an archive whose class path is a prefix of its own.
    """
    names = sorted(path.name for path in (home / "jars").glob("*.jar"))
    foreign = [name for name in names if name.startswith(_FOREIGN_JARS)]
    needed = [name for name in names if not name.startswith(_FOREIGN_JARS)]
    return os.pathsep.join(f"{home}/jars/{name}" for name in (needed if jars is Jars.NEEDED else needed + foreign))


def _command(*, java: Java, class_path: str, heap_mb: int, options: tuple[str, ...]) -> list[str]:
    return [
        str(java.executable),
        "-cp",
        class_path,
        f"-Xmx{heap_mb}m",
        *_OPTIONS,
        *options,
        *(f"--add-opens={package}=ALL-UNNAMED" for package in PACKAGES_OPENED),
        "org.apache.spark.deploy.SparkSubmit",
    ]
