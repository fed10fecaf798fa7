"""The oracle's own reader of segment files: what recovery would keep, and why it stopped."""

from collections.abc import Callable
from pathlib import Path

import pytest

from laststand.emulator.verification.reading.logs import read_node_logs
from laststand.emulator.verification.tables.final_logs import FinalBatch, FinalLog
from tests.verification.run_builder import healthy

Spoil = Callable[[bytes], bytes]


def read(directory: Path) -> tuple[list[FinalBatch], FinalLog]:
    [found] = read_node_logs(node=1, directory=directory)
    return list(found.batches()), found.log


def node_directory(tmp_path: Path) -> Path:
    return healthy(tmp_path / "run").finish() / "nodes/1"


def test_reads_every_batch(tmp_path: Path) -> None:
    batches, log = read(node_directory(tmp_path))
    assert [(b.base_offset, b.last_offset, b.record_count) for b in batches] == [(0, 9, 10), (10, 19, 10), (20, 29, 10)]
    assert {(b.topic, b.partition, b.topic_id, b.producer_id) for b in batches} == {("orders", 0, "orders-id", 7)}
    assert (log.log_start_offset, log.log_end_offset, log.is_clean, log.problem) == (0, 30, True, None)


@pytest.mark.parametrize(
    ("spoil", "kept", "problem"),
    [
        (lambda data: data[:-1], 2, "torn batch"),
        (lambda data: data[:-50], 2, "torn batch"),
        (lambda data: data + bytes(100), 3, "no batch"),
        (lambda data: data + bytes(30), 3, "torn batch"),
        (lambda data: data[:100] + bytes([data[100] ^ 1]) + data[101:], 1, "wrong CRC"),
        (lambda data: b"", 0, None),
    ],
)
def test_stops_at_the_first_bad_batch(spoil: Spoil, kept: int, problem: str | None, tmp_path: Path) -> None:
    directory = node_directory(tmp_path)
    segment = directory / f"data/orders-0/{0:020}.log"
    segment.write_bytes(spoil(segment.read_bytes()))
    batches, log = read(directory)
    assert len(batches) == kept
    assert log.log_end_offset == kept * 10
    assert log.problem is None if problem is None else (log.problem or "").startswith(problem)


def test_later_segments_of_a_bad_one_are_dropped(tmp_path: Path) -> None:
    directory = node_directory(tmp_path)
    first = directory / f"data/orders-0/{0:020}.log"
    content = first.read_bytes()
    cut = len(content) // 3
    (directory / f"data/orders-0/{20:020}.log").write_bytes(content[2 * cut :])
    first.write_bytes(content[: 2 * cut - 1])
    batches, log = read(directory)
    assert [b.base_offset for b in batches] == [0]
    assert log.log_end_offset == 10


def test_log_start_comes_from_the_checkpoint(tmp_path: Path) -> None:
    directory = node_directory(tmp_path)
    (directory / "data/log-start-offset-checkpoint").write_text("0\n1\norders 0 12\n")
    (directory / "data/.kafka_cleanshutdown").unlink()
    _, log = read(directory)
    assert (log.log_start_offset, log.log_end_offset, log.is_clean) == (12, 30, False)


@pytest.mark.parametrize(("start", "first"), [(9, 0), (10, 10), (15, 10), (30, None)])
def test_a_log_begins_at_its_start(start: int, first: int | None, tmp_path: Path) -> None:
    """Batches below it may lie in segments that are not deleted yet, and nobody can read them."""
    directory = node_directory(tmp_path)
    (directory / "data/log-start-offset-checkpoint").write_text(f"0\n1\norders 0 {start}\n")
    batches, log = read(directory)
    assert next((batch.base_offset for batch in batches), None) == first
    assert (log.log_start_offset, log.log_end_offset) == (start, 30)


def test_a_log_that_begins_again_has_no_gap_before_its_start(tmp_path: Path) -> None:
    """A power loss left the segment that a follower had removed when it began again at 20."""
    directory = node_directory(tmp_path)
    segment = directory / f"data/orders-0/{0:020}.log"
    content = segment.read_bytes()
    third = len(content) // 3
    segment.write_bytes(content[:third])
    (directory / f"data/orders-0/{20:020}.log").write_bytes(content[2 * third :])
    (directory / "data/log-start-offset-checkpoint").write_text("0\n1\norders 0 20\n")
    assert [batch.base_offset for batch in read(directory)[0]] == [20]


def test_strangers_in_the_data_directory_are_left_alone(tmp_path: Path) -> None:
    directory = node_directory(tmp_path)
    (directory / "data/no-partition").mkdir()
    (directory / "data/orders-0").rename(directory / "data/__cluster_metadata-0")
    (directory / "data/orders-1").touch()
    (directory / "data/version-2").mkdir()  # of a ZooKeeper server
    (directory / "data/version-2/log.1").touch()
    assert list(read_node_logs(node=1, directory=directory)) == []
