"""Large inputs take another way through Spark and come to the same verdicts."""

from pathlib import Path

import msgspec
import pytest

from emulator.verification import reader
from tests.verification.conftest import Judge
from tests.verification.run_builder import last_replica_standing

pytestmark = pytest.mark.spark


@pytest.mark.timeout(300)  # each of many queries is planned and compiled for a large input
def test_both_ways_give_the_same_reports(judge: Judge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = {
        era: last_replica_standing(tmp_path / f"run{number}" / "1", era=era).finish()
        for number, era in enumerate(("kafka-3.9", "kip-966"))
    }
    with (runs["kip-966"] / "events/2-0.jsonl").open("a") as file:
        file.write('{"torn": ')
    small = judge(runs)
    monkeypatch.setattr(reader, "LARGE_FROM_BYTES", 0)
    large = judge(runs)
    assert msgspec.to_builtins(large) == msgspec.to_builtins(small)
    assert [report.verdict.value for report in small.values()] == ["violation", "valid"]
