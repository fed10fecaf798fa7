"""A standalone Spark cluster on loopback."""

import os
import re
import subprocess
import time
from pathlib import Path
from typing import Final

import psutil
import pyspark

from laststand.emulator.parent_death import die_with_parent
from laststand.emulator.verification.spark.class_archive import find_class_archive
from laststand.emulator.verification.spark.gateway import Jars, class_path
from laststand.emulator.verification.spark.java import find_java

SPARK_HOME: Final = Path(pyspark.__file__).parent
QUICK: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For JVMs that live for a minute: a master's, workers', and executors', which inherit it."""

_START_TIMEOUT_S: Final = 60
_LIBRARIES: Final = SPARK_HOME.parent
"""On a path, and not as a site: what is installed from here in place is not found."""


class Cluster:
    """A master and its workers; each worker's executors are processes of their own.

    Attributes:
        master: its address.
        workers: by name.
    """

    def __init__(self, directory: Path, *, java_options: str = QUICK) -> None:
        self.directory = directory
        self._java_options = java_options
        self.workers: dict[str, psutil.Process] = {}
        self._processes: list[subprocess.Popen[bytes]] = []
        self.master = self._start("master", "Master", "--port", "0", found=r"Starting Spark master at (spark://\S+)")

    def add_worker(self, name: str, *, memory: str = "600m", prefix: tuple[str, ...] = ()) -> None:
        """Starts a worker with one core and so much memory for executors, and waits until the master has it."""
        work = str(self.directory / name)
        options = ("--port", "0", "--cores", "1", "--memory", memory, "--work-dir", work, self.master)
        self._start(name, "Worker", *options, found="Successfully registered with (master)", prefix=prefix)
        self.workers[name] = psutil.Process(self._processes[-1].pid)

    @property
    def processes(self) -> tuple[psutil.Process, ...]:
        """The master and the workers; executors are below these."""
        return tuple(psutil.Process(process.pid) for process in self._processes)

    def stop(self) -> None:
        """Ends all of it."""
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.wait(timeout=30)

    def _start(self, name: str, role: str, *options: str, found: str, prefix: tuple[str, ...] = ()) -> str:
        log = self.directory / f"{name}.log"
        program = f"org.apache.spark.deploy.{role.lower()}.{role}"
        listening = ("--host", "127.0.0.1", "--webui-port", "0")
        java = find_java()
        archive = find_class_archive(java)
        start = (str(java.executable), *(archive.options_to_use() if archive else ()), "-Xmx256m")
        command = [*start, "-cp", class_path(SPARK_HOME, Jars.ALL), program, *listening]
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.directory),
            "SPARK_HOME": str(SPARK_HOME),
            "SPARK_SCALA_VERSION": "2.13",  # as bin/load-spark-env.sh says
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYTHONPATH": str(_LIBRARIES),
            "JAVA_TOOL_OPTIONS": self._java_options,
        }
        with log.open("wb") as written:
            process = subprocess.Popen(
                die_with_parent([*prefix, *command, *options]), stdout=written, stderr=written, env=environment
            )
        self._processes.append(process)
        deadline = time.monotonic() + _START_TIMEOUT_S
        while time.monotonic() < deadline:
            match = re.search(found, log.read_text())
            if match is not None:
                return match[1]
            if process.poll() is not None:
                break
            time.sleep(0.05)
        raise AssertionError(log.read_text())
