"""``python -m tests.clients.install``: gets what the clients need, and says what cannot be had.

kcat, Maven and a compiler of Java are packages of Debian and its descendants, and are installed where they are missing
and the user may do so. Jars come through Maven, modules of Go through its proxy; all is built into the user's cache.
Nothing that is missing is an error here: its tests are skipped with the reason.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import pytest

from tests.clients.programs import ROCKSDB, TANSU, WEB_UI, go_client, jars, java_client, python_environment

PACKAGES: Final[Mapping[str, str]] = {"kcat": "kcat", "mvn": "maven", "javac": "default-jdk-headless"}
"""Debian's package of each program that must be on ``PATH``."""

_BUILDS: Final[Mapping[str, Callable[[], object]]] = {
    "Java 4.2": partial(java_client, "kafka-clients-4.2.0"),
    "Java 3.9": partial(java_client, "kafka-clients-3.9.1"),
    "Kafka's tools": partial(jars, "kafka-tools-4.2.0"),
    "Spark's connector": partial(jars, "spark-sql-kafka-4.2.0"),
    "franz-go": partial(go_client, "franz"),
    "sarama": partial(go_client, "sarama"),
    "kfake": partial(go_client, "kfake"),
    "RocksDB": partial(python_environment, ROCKSDB),
    "Tansu": partial(python_environment, TANSU),
    "kafka-viewer": partial(python_environment, WEB_UI),
}


def missing_packages() -> list[str]:
    """Returns the packages of the programs that are not on ``PATH``."""
    return sorted(package for program, package in PACKAGES.items() if shutil.which(program) is None)


def install_command(packages: list[str]) -> tuple[str, ...] | None:
    """Returns the command that installs packages; ``None`` where the user may not, or there is no apt."""
    apt, sudo = shutil.which("apt-get"), shutil.which("sudo")
    if apt is None or (os.geteuid() != 0 and sudo is None):
        return None
    as_root = () if os.geteuid() == 0 or sudo is None else (sudo, "-n")
    return (*as_root, apt, "install", "--yes", "--quiet", "--no-install-recommends", *packages)


def main() -> None:
    """Installs and builds."""
    packages = missing_packages()
    if packages:
        command = install_command(packages)
        if command is None or subprocess.run(command, check=False).returncode:
            sys.stdout.write(f"not installed: {' '.join(packages)}; tests that need them are skipped\n")
    for name, build in _BUILDS.items():
        try:
            build()
        except pytest.skip.Exception as reason:
            sys.stdout.write(f"{name}: {reason}\n")


if __name__ == "__main__":
    main()
