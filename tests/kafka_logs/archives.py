"""The log directories that brokers of Apache Kafka wrote (``make.py``), unpacked for a test."""

import tarfile
from pathlib import Path
from typing import Final

VERSIONS: Final = ("3.9.1", "4.2.0", "4.4.0")


def unpack(version: str, target: Path) -> Path:
    """Unpacks ``node-1`` to ``node-3`` and ``node-100`` into a directory, and returns it."""
    with tarfile.open(Path(__file__).with_name(f"kafka-{version}.tar.xz")) as archive:
        archive.extractall(target, filter="data")
    return target
