"""Kafka's own tool reads a controller's log, where Kafka is installed."""

import re
from pathlib import Path

import pytest

from tests.cluster.dump_tool import dumped
from tests.unit.kafka.test_metadata_encoding import BESIDE_KAFKA, BY_KAFKA, write_log

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]

_PAYLOAD = re.compile(r'"type":"(\w+)"')
_CONTROL = re.compile(r"(LeaderChange|KRaftVersion|KRaftVoters):? \{")


def test_kafkas_own_tool_reads_our_log(tmp_path: Path) -> None:
    write_log(tmp_path / "log")
    output = dumped(tmp_path / "log" / f"{0:020}.log", "--cluster-metadata-decoder")
    assert _CONTROL.findall(output) == ["LeaderChange", "KRaftVersion", "KRaftVoters"]
    names = [name.replace("_", "").removesuffix("RECORD") for name in _PAYLOAD.findall(output)]
    expected = [type(record).__name__.removesuffix("Record").upper() for record in (*BY_KAFKA, *BESIDE_KAFKA)]
    assert names == expected
    assert '"lastKnownElr":[2]' in output
