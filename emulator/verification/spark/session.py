"""The one Spark session of this process, started early and in the background.

A session costs several seconds, most of them for the start of a JVM. ``SparkSessionStarter.start`` launches the JVM at
a low priority and returns at once; a thread connects to it and rehearses, so that classes are loaded and workers are
ready. ``session()`` waits for the result::

    starter = SparkSessionStarter(log_path=run_directory / "spark.log", rehearsal=rehearse)
    starter.start()                    # main thread; clusters run meanwhile
    spark = starter.session()          # the nodes are gone: hurry, and wait for it
    reports = verify_runs(paths, spark=spark)
    starter.stop()

Verification needs tasks and no SQL. So the thread makes a context, which ``tasks()`` waits for, and only ``session()``
makes a session of it: that takes the JVM another second.

Settings follow what was measured on small inputs: no UI, in-memory catalog, no adaptive execution, four shuffle
partitions, workers forked from a process that has imported the checks. ``pyspark`` is imported in the thread, never by
importing this module.
"""

import contextlib
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from laststand.emulator.core.errors import EmulatorError
from laststand.emulator.verification.spark.class_archive import (
    ArchiveUse,
    ClassArchive,
    ask_questions,
    find_class_archive,
)
from laststand.emulator.verification.spark.executors import (
    executor_settings,
    find_driver_address,
    is_local,
    is_loopback,
    prepare_executors,
    reason_of,
)
from laststand.emulator.verification.spark.gateway import GatewayError, Jars, SparkGateway
from laststand.emulator.verification.spark.java import find_java
from laststand.emulator.verification.spark.tasks import SparkTasks, WithoutSql

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

DEFAULT_MASTER: Final = "local[2]"
DEFAULT_HEAP_MB: Final = 2048
START_TIMEOUT_S: Final = 120.0
"""Longest wait for the JVM and the first query on a busy machine."""

_Ready = TypeVar("_Ready")

_LOOK_INTERVAL_S: Final = 0.2
_END_TIMEOUT_S: Final = 0.5
"""Time that a JVM may take to end after its connection broke."""

_NO_ROOM: Final = "No space left on device"

_WRITING: Final = (
    "at the end an archive of Spark's classes is written, once: half a minute, minutes on a busy machine\n"
)
_JVM_END_TIMEOUT_S: Final = 120.0
"""Longest wait on a busy machine for a JVM to end in order; it may write the class archive first."""

_THREAD_TIMEOUT_S: Final = 5.0
"""Longest wait for the thread that connects, once its JVM is gone."""

_SETTINGS: Final = {
    "spark.app.name": "laststand",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.session.timeZone": "UTC",
    # Hundreds of small files share a task: opening one is cheap on a local disk.
    "spark.sql.files.openCostInBytes": "65536",
    # Listing files is the driver's work: a job for it costs more.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
}

_LOCAL_SETTINGS: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # A cluster's executors fork their workers before they have the code.
    "spark.python.daemon.module": "laststand.emulator.verification.worker_daemon",
}
_PINNED_SETTINGS: Final = {
    # Missing or corrupt files are never ignored, whatever a cluster's defaults or a user's settings are.
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
}
_PYTHON_SETTING: Final = "spark.pyspark.python"


class SparkSessionError(EmulatorError):
    """The session did not come up."""

    def __init__(self, *, reason: str, log_path: Path) -> None:
        super().__init__(f"Spark did not start: {reason}; see {log_path}")
        self.reason = reason
        self.log_path = log_path


class SparkLostError(EmulatorError):
    """The session came up, but failed before its work was done."""

    def __init__(self, *, reason: str, log_path: Path) -> None:
        super().__init__(f"Spark did not come to the end of the verification: {reason}; see {log_path}")
        self.reason = reason
        self.log_path = log_path


class SparkSessionStarter:
    """Owns the Spark session of this process, of which there is at most one at a time."""

    def __init__(
        self,
        *,
        log_path: Path,
        master: str = DEFAULT_MASTER,
        heap_mb: int = DEFAULT_HEAP_MB,
        rehearsal: "Callable[[SparkTasks], None] | None" = None,
        archive_use: ArchiveUse = ArchiveUse.READ,
        conf: Mapping[str, str] | None = None,
        driver_address: str | None = None,
        work_directory: Path | None = None,
        imported: str = "laststand.emulator.verification.judge",
        jars: Jars = Jars.NEEDED,
    ) -> None:
        """Keeps the settings; nothing is started yet.

        Args:
            log_path: file for the JVM's output; its directory must exist.
            master: Spark's master URL.
            heap_mb: upper bound of the Java heap, in MiB.
            rehearsal: function to run in the background before the session counts as started, such as
                ``verify.rehearse``; useful if other work goes on meanwhile.
            archive_use: ``WRITE`` only if nothing else waits for this process: the first time costs seconds.
            conf: Spark's settings, which override those of this module, except those that protect evidence.
            driver_address: address at which a cluster's executors reach this machine; found if not given.
            work_directory: for Spark's temporary files; must exist. The system's if not given.
            imported: the module that a cluster's executors must be able to import.
            jars: Spark's jars for the session; with a cluster it has all of them.
        """
        self._log_path = log_path
        self._master = master
        self._heap_mb = heap_mb
        self._rehearsal = rehearsal
        self._archive_use = archive_use
        self._conf = dict(conf or {})
        self._driver_address = driver_address
        self._work_directory = work_directory
        self._imported = imported
        self._jars = jars if is_local(master) else Jars.ALL
        self._gateway: SparkGateway | None = None
        self._written_archive: ClassArchive | None = None
        self._thread: threading.Thread | None = None
        self._context: SparkContext | None = None
        self._session: SparkSession | None = None
        self._failure: Exception | None = None

    def start(self) -> None:
        """Launches the JVM and returns at once. Main thread only: the JVM ends with the thread that started it.

        Raises:
            MissingToolError: no Java, or no pyspark.
            ConfigError: the URL does not name a master, or the master does not answer.
        """
        java = find_java()
        address = self._driver_address or find_driver_address(self._master)
        archive = find_class_archive(java)
        options = () if archive is None else archive.options_to_use()
        if archive is not None and not archive.is_there and self._archive_use is ArchiveUse.WRITE:
            self._written_archive = archive
            sys.stderr.write(_WRITING)
            options = archive.options_to_write()
        settings = self._settings(address, archive)
        self._gateway = SparkGateway.start(
            java=java,
            log_path=self._log_path,
            heap_mb=self._heap_mb,
            options=options,
            submitted=() if is_local(self._master) else _submitted(self._master, settings),
            address=address,
            work_directory=self._work_directory,
            jars=self._jars,
        )
        self._thread = threading.Thread(target=self._connect, args=(self._gateway, settings), name="spark", daemon=True)
        self._thread.start()

    def _settings(self, address: str | None, archive: ClassArchive | None) -> dict[str, str]:
        settings = dict(_SETTINGS)
        if is_local(self._master):
            settings.update(_LOCAL_SETTINGS)
        else:
            settings.update(executor_settings(archive if is_loopback(address) else None))
            settings.update({} if address is None else {"spark.driver.host": address})
        if self._work_directory is not None:
            settings["spark.local.dir"] = str(self._work_directory)
        return {**settings, **self._conf, **_PINNED_SETTINGS}

    def session(self) -> "SparkSession":
        """Returns the session; starts it if necessary.

        Raises:
            MissingToolError: no Java, or no pyspark.
            SparkSessionError: the session did not start.
        """
        context = self.tasks().sparkContext
        if self._session is None:
            from pyspark.sql import SparkSession

            try:
                self._session = SparkSession(context)
            except Exception as error:  # of many types; mostly the JVM has ended
                raise SparkSessionError(
                    reason=self._reason_of_loss(error) or reason_of(error), log_path=self._log_path
                ) from error
        return self._session

    def tasks(self) -> SparkTasks:
        """Gives the JVM its normal priority back and waits until it runs tasks; starts it if necessary.

        Raises:
            MissingToolError: no Java, or no pyspark.
            SparkSessionError: the session did not start within ``START_TIMEOUT_S``.
        """
        if self._gateway is None or self._thread is None:
            self.start()
        assert self._gateway is not None
        assert self._thread is not None
        self._gateway.hurry()
        self._await_context(self._gateway, self._thread)
        if self._failure is not None:
            failure = self._failure
            reason = f"its JVM {failure.reason}" if isinstance(failure, GatewayError) else reason_of(failure)
            raise SparkSessionError(reason=reason, log_path=self._log_path) from failure
        if self._context is None:
            raise SparkSessionError(reason=f"no session after {START_TIMEOUT_S:.0f} s", log_path=self._log_path)
        return WithoutSql(self._context)

    def _await_context(self, gateway: SparkGateway, thread: threading.Thread) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while thread.is_alive() and time.monotonic() < deadline:
            thread.join(_LOOK_INTERVAL_S)
            # A connection to a JVM that is gone may never be answered.
            if thread.is_alive() and (exit_code := gateway.exit_code()) is not None:
                reason = f"its JVM {gateway.end_in_words(exit_code)}"
                raise SparkSessionError(reason=reason, log_path=self._log_path)

    def at_work(self) -> "AbstractContextManager[SparkSession]":
        """Yields the session; errors because its JVM ended or a disk is full become one error of one line.

        Raises:
            MissingToolError: no Java, or no pyspark.
            SparkSessionError: the session did not start.
            SparkLostError: the session started, and then its JVM ended, or a disk was full.
        """
        return self._at_work(self.session)

    def tasks_at_work(self) -> AbstractContextManager[SparkTasks]:
        """Yields the runner of tasks, with the same errors as ``at_work``.

        Raises:
            MissingToolError: no Java, or no pyspark.
            SparkSessionError: the session did not start.
            SparkLostError: the session started, and then its JVM ended, or a disk was full.
        """
        return self._at_work(self.tasks)

    @contextlib.contextmanager
    def _at_work(self, wait: Callable[[], _Ready]) -> Iterator[_Ready]:
        ready = wait()
        try:
            yield ready
        except EmulatorError:
            raise
        except Exception as error:
            reason = self._reason_of_loss(error)
            if reason is None:
                raise
            raise SparkLostError(reason=reason, log_path=self._log_path) from error

    def _reason_of_loss(self, error: Exception) -> str | None:
        exit_code = None if self._gateway is None else self._gateway.exit_code(within_s=_END_TIMEOUT_S)
        if self._gateway is not None and exit_code is not None:
            return f"its JVM {self._gateway.end_in_words(exit_code)}"
        return _NO_ROOM if _NO_ROOM in str(error) else None

    @property
    def is_up(self) -> bool:
        """The session was started, and its JVM still runs."""
        return self._context is not None and self._gateway is not None and self._gateway.exit_code() is None

    def hurry(self) -> None:
        """Gives the JVM its normal priority, before a caller waits for it."""
        if self._gateway is not None:
            self._gateway.hurry()

    @property
    def master(self) -> str:
        """Spark's master URL."""
        return self._master

    def stop(self) -> None:
        """Ends session and JVM. Does nothing the second time."""
        if self._gateway is None:
            return
        if self._context is not None and self._gateway.exit_code() is None:
            if self._written_archive is not None:
                with contextlib.suppress(Exception):  # the archive is optional
                    ask_questions(self.session(), self._gateway.directory)  # it also serves users' queries
            (self._session or self._context).stop()
        # Given time, the JVM removes its files in the work directory.
        is_awaited = self._written_archive is not None or self._work_directory is not None
        self._gateway.stop(timeout_s=_JVM_END_TIMEOUT_S if is_awaited else 0.0)
        self._forget_jvm(self._gateway)
        if self._written_archive is not None:
            if self._gateway.exit_code() == 0:
                self._written_archive.install()
            else:
                self._written_archive.drop()
            self._written_archive = None
        self._gateway = None

    def _forget_jvm(self, gateway: SparkGateway) -> None:
        """Makes the next session of this process start its own JVM, once no thread makes a session with this JVM."""
        if self._thread is not None:
            self._thread.join(_THREAD_TIMEOUT_S)
            if self._thread.is_alive():
                return
        gateway.detach()
        if self._context is not None:
            _forget_gateway()
            self._context = self._session = None

    def __enter__(self) -> "SparkSession":
        return self.session()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _connect(self, gateway: SparkGateway, settings: Mapping[str, str]) -> None:
        try:
            gateway.attach(timeout_s=START_TIMEOUT_S)
            # Nothing is stored there; without a place it would be a folder in the user's working directory.
            warehouse = {"spark.sql.warehouse.dir": str(gateway.directory / "warehouse")}
            context = _context(self._master, {**warehouse, **settings})
            if not is_local(self._master):
                prepare_executors(WithoutSql(context), gateway.directory, imported=self._imported)
            if self._rehearsal is not None:
                self._rehearsal(WithoutSql(context))
            self._context = context
        except Exception as error:  # top level of a thread: ``tasks`` raises it again
            self._failure = error


def _submitted(master: str, settings: Mapping[str, str]) -> tuple[str, ...]:
    given = (word for key, value in settings.items() for word in ("--conf", f"{key}={value}"))
    return ("--master", master, *given)


def _context(master: str, settings: Mapping[str, str]) -> "SparkContext":
    from pyspark import SparkConf, SparkContext

    # Py4J prints tracebacks when a JVM ends, in part through the root logger.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_not_of_py4j)

    if _PYTHON_SETTING in settings:
        os.environ["PYSPARK_PYTHON"] = settings[_PYTHON_SETTING]
    conf: SparkConf = SparkConf().setMaster(master).setAll(list(settings.items()))
    return SparkContext.getOrCreate(conf)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return Path(record.pathname).parent.name != "py4j"


def _forget_gateway() -> None:
    # A stopped context keeps its connection for the next one; the next starter brings another JVM.
    from pyspark import SparkContext

    if SparkContext._gateway is not None:
        SparkContext._gateway.shutdown()
    SparkContext._gateway = None
    SparkContext._jvm = None
