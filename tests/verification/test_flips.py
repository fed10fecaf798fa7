"""Bytes, offsets and epochs flipped in final logs, and in events: each disagreement is found."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from laststand.emulator.verification.verdict.report import Verdict, VerdictReport
from tests.verification.conftest import Judge
from tests.verification.resealing import reseal
from tests.verification.run_builder import healthy

BASE_OFFSET, LEADER_EPOCH, CRC, LAST_OFFSET_DELTA, BODY = 7, 15, 17, 26, 62
"""Positions in a batch header (last byte of a field)."""


def in_log(position: int, *, node: int = 1) -> Callable[[Path], None]:
    def flip(run: Path) -> None:
        path = run / f"nodes/{node}/data/orders-0/{0:020}.log"
        content = bytearray(path.read_bytes())
        start = len(content) // 3  # The second of three equal batches.
        content[start + position] ^= 1
        path.write_bytes(content)

    return flip


def in_event(field: str, *, node: int = 1, kind: str = "BatchAppended") -> Callable[[Path], None]:
    def flip(run: Path) -> None:
        path = run / f"events/{node}-0.jsonl"
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        line = [line for line in lines if line["type"] == kind][1]
        line[field] = line[field] ^ 1
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        reseal(run)

    return flip


FLIPS: Mapping[str, tuple[Callable[[Path], None], str]] = {
    "log: record byte": (in_log(BODY), "E1"),
    "log: CRC": (in_log(CRC), "E1"),
    "log: base offset": (in_log(BASE_OFFSET), "E1"),
    "log: leader epoch": (in_log(LEADER_EPOCH), "E1"),
    "log: last offset delta": (in_log(LAST_OFFSET_DELTA), "E1"),
    "leader's log: record byte": (in_log(BODY, node=0), "D1"),
    "leader's log: base offset": (in_log(BASE_OFFSET, node=0), "D1"),
    "leader's log: leader epoch": (in_log(LEADER_EPOCH, node=0), "D6"),
    "event: CRC": (in_event("crc"), "E1"),
    "event: base offset": (in_event("base_offset"), "E1"),
    "event: last offset": (in_event("last_offset"), "E1"),
    "event: leader epoch": (in_event("leader_epoch"), "E1"),
    "event: record count": (in_event("record_count"), "E1"),
    "leader's event: CRC": (in_event("crc", node=0), "D10"),
    "leader's event: high watermark": (in_event("new", node=0, kind="HighWatermarkAdvanced"), "H3"),
    "controller's event: partition epoch": (in_event("partition_epoch", node=100, kind="PartitionChanged"), "M9"),
    "controller's event: leader epoch": (in_event("leader_epoch", node=100, kind="PartitionChanged"), "M9"),
}


@pytest.fixture(scope="module")
def reports(judge: Judge, tmp_path_factory: pytest.TempPathFactory) -> dict[str, VerdictReport]:
    base = tmp_path_factory.mktemp("flips")
    runs = {}
    for number, (name, (flip, _)) in enumerate(FLIPS.items()):
        run = healthy(base / f"run{number}" / "1")
        run.alter(reason="alter_partition", broker=0, isr=(0, 1))
        run.alter(reason="alter_partition", broker=0, isr=(0, 1, 2))
        runs[name] = run.finish()
        flip(runs[name])
    return judge(runs)


@pytest.mark.parametrize("name", FLIPS)
def test_a_flip_is_found(name: str, reports: dict[str, VerdictReport]) -> None:
    assert FLIPS[name][1] in {check.check_id for check in reports[name].violated()}
    assert reports[name].verdict is Verdict.VIOLATION
