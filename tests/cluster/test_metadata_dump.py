"""Kafka's own tool reads a controller's log, where Kafka is installed."""

import re
import subprocess
from pathlib import Path

import pytest

from laststand.chaos.kafka.program import kafka_program
from laststand.emulator.cluster.kafka_distribution import PLAYED_VERSION
from laststand.emulator.core.errors import MissingToolError
from tests.unit.kafka.test_metadata_encoding import BESIDE_KAFKA, BY_KAFKA, write_log

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]

_PAYLOAD = re.compile(r'"type":"(\w+)"')
_CONTROL = re.compile(r"(LeaderChange|KRaftVersion|KRaftVoters):? \{")


def test_kafkas_own_tool_reads_our_log(tmp_path: Path) -> None:
    write_log(tmp_path / "log")
    output = dumped(tmp_path / "log" / f"{0:020}.log")
    assert _CONTROL.findall(output) == ["LeaderChange", "KRaftVersion", "KRaftVoters"]
    names = [name.replace("_", "").removesuffix("RECORD") for name in _PAYLOAD.findall(output)]
    expected = [type(record).__name__.removesuffix("Record").upper() for record in (*BY_KAFKA, *BESIDE_KAFKA)]
    assert names == expected
    assert '"lastKnownElr":[2]' in output


def dumped(log: Path) -> str:
    """Returns the output of ``kafka-dump-log.sh --cluster-metadata-decoder``."""
    try:
        kafka = kafka_program(PLAYED_VERSION)
    except MissingToolError as error:
        pytest.skip(str(error))
    tool = (str(kafka.java), "-cp", kafka.distribution.class_path, "kafka.tools.DumpLogSegments")
    order = (*tool, "--cluster-metadata-decoder", "--files", str(log))
    done = subprocess.run(order, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    assert "Error" not in done.stdout + done.stderr, done.stdout
    return done.stdout
