"""Kafka's own tool that reads files of logs, ``kafka-dump-log.sh``, where Kafka is installed."""

import subprocess
from pathlib import Path

import pytest

from laststand.chaos.kafka.program import kafka_program
from laststand.emulator.cluster.kafka_distribution import PLAYED_VERSION
from laststand.emulator.core.errors import MissingToolError


def dumped(file: Path, *options: str) -> str:
    """Returns what the tool prints of a file; skips the test where Kafka is not installed."""
    try:
        kafka = kafka_program(PLAYED_VERSION)
    except MissingToolError as error:
        pytest.skip(str(error))
    tool = (str(kafka.java), "-cp", kafka.distribution.class_path, "kafka.tools.DumpLogSegments")
    order = (*tool, *options, "--files", str(file))
    done = subprocess.run(order, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    assert "Error" not in done.stdout + done.stderr, done.stdout
    return done.stdout
