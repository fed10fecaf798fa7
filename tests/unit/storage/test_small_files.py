"""Checkpoints, clean-shutdown file, property files, producer snapshots."""

from collections.abc import Sequence

import pytest

from laststand.emulator.core import inputs
from laststand.emulator.core.batch import EpochEntry
from laststand.emulator.core.disk import Keep
from laststand.emulator.core.errors import StorageError
from laststand.emulator.core.types import (
    BrokerEpoch,
    LeaderEpoch,
    NodeId,
    Offset,
    ProducerEpoch,
    ProducerId,
    TopicPartition,
)
from laststand.emulator.storage import clean_shutdown
from laststand.emulator.storage.checkpoints import (
    format_epochs,
    format_offsets,
    parse_epochs,
    parse_offsets,
    read_offsets,
    read_offsets_leniently,
    write_offsets,
)
from laststand.emulator.storage.meta_properties import MetaProperties, read_meta_properties, write_meta_properties
from laststand.emulator.storage.producer_snapshot import (
    decode_snapshot,
    delete_stray_snapshots,
    encode_snapshot,
    newest_snapshot,
    snapshot_offsets,
    write_snapshot,
)
from tests.memory_filesystem import CrashPoint, FaultOutcome, SimulatedCrashError
from tests.unit.storage.log_fixtures import durable_directory, overwrite

OFFSETS = {TopicPartition("b", 0): Offset(7), TopicPartition("a", 1): Offset(1500)}
ENTRY = inputs.ProducerSnapshotEntry(
    producer_id=ProducerId(9),
    producer_epoch=ProducerEpoch(1),
    last_sequence=4,
    last_offset=Offset(44),
    offset_delta=2,
    timestamp_ms=1000,
)


def test_offsets_are_text_sorted_by_partition() -> None:
    text = format_offsets(OFFSETS)
    assert text == "0\n2\na 1 1500\nb 0 7\n"
    assert parse_offsets(text, path="x") == OFFSETS
    assert parse_offsets("", path="x") == {}
    assert parse_offsets("0\n", path="x") == {}


def test_epochs_are_text() -> None:
    epochs = (EpochEntry(LeaderEpoch(0), Offset(0)), EpochEntry(LeaderEpoch(2), Offset(700)))
    assert format_epochs(epochs) == "0\n2\n0 0\n2 700\n"
    assert parse_epochs(format_epochs(epochs), path="x") == epochs


@pytest.mark.parametrize(
    "text", ["7\n0\n", "x", "0\nx\n", "0\n2\na 0 1\n", "0\n1\na 0 1\nb 0 2\n", "0\n1\na 0\n", "0\n1\na 0 x\n"]
)
def test_bad_checkpoint_is_an_error_or_counts_as_absent(text: str) -> None:
    filesystem = durable_directory("/d")
    overwrite(filesystem, "/d/checkpoint", text.encode())
    with pytest.raises(StorageError):
        read_offsets(filesystem, "/d/checkpoint")
    assert read_offsets_leniently(filesystem, "/d/checkpoint") == {}
    with pytest.raises(StorageError):
        parse_epochs(text, path="x")


@pytest.mark.parametrize("outcome", [FaultOutcome.DONE, FaultOutcome.NOT_DONE])
@pytest.mark.parametrize("keep", [None, *Keep])
def test_checkpoint_is_old_or_new_after_a_crash_anywhere(outcome: FaultOutcome, keep: Keep | None) -> None:
    new = {TopicPartition("a", 1): Offset(2000)}
    operation = 0
    while True:
        operation += 1
        filesystem = durable_directory("/d")
        write_offsets(filesystem, "/d/checkpoint", OFFSETS)
        filesystem.restart(crash_at=CrashPoint(operation=operation, outcome=outcome))
        try:
            write_offsets(filesystem, "/d/checkpoint", new)
        except SimulatedCrashError:
            if keep is not None:
                filesystem.lose_power(keep=keep, seed=operation)
            filesystem.restart()
            assert read_offsets(filesystem, "/d/checkpoint") in (OFFSETS, new)
            write_offsets(filesystem, "/d/checkpoint", new)
            assert read_offsets(filesystem, "/d/checkpoint") == new
            continue
        break
    assert operation == 6


@pytest.mark.parametrize(
    ("epochs", "previous"),
    [
        ([], None),
        ([3], 3),
        ([3, 3], 3),
        ([3, 4], None),
        ([3, None], None),
        ([-1], None),
        ([-1, 5], 5),
        ([5, -1], None),
        ([-1, -1], None),
    ],
)
def test_previous_broker_epoch(epochs: Sequence[int | None], previous: int | None) -> None:
    assert clean_shutdown.previous_broker_epoch(epochs) == previous


def test_a_broker_that_never_had_an_epoch_writes_minus_one() -> None:
    filesystem = durable_directory("/d")
    clean_shutdown.write(filesystem, "/d", None)
    assert clean_shutdown.read_broker_epoch(filesystem, "/d") == -1


@pytest.mark.parametrize(
    ("content", "epoch"),
    [
        (b"", None),
        (b"garbage", None),
        (b"\xff\xfe", None),
        (b'{"version":0}', None),
        (b'{"version":0,"brokerEpoch":null}', None),
        (b'{"version":0,"brokerEpoch":7,"other":1}', 7),
        (b'{"version":0,"brokerEpoch":-1}', -1),
    ],
)
def test_existence_and_content_of_the_clean_shutdown_file_are_two_facts(content: bytes, epoch: int | None) -> None:
    filesystem = durable_directory("/d")
    overwrite(filesystem, "/d/.kafka_cleanshutdown", content)
    assert clean_shutdown.is_clean(filesystem, "/d")
    assert clean_shutdown.read_broker_epoch(filesystem, "/d") == epoch


def test_clean_shutdown_file_neither_vanishes_nor_comes_back() -> None:
    for seed in range(20):
        filesystem = durable_directory("/d")
        clean_shutdown.write(filesystem, "/d", BrokerEpoch(7))
        filesystem.lose_power(keep=Keep.PREFIX, seed=seed)
        filesystem.restart()
        assert clean_shutdown.read_broker_epoch(filesystem, "/d") == 7
        clean_shutdown.delete(filesystem, "/d")
        filesystem.lose_power(keep=Keep.PREFIX, seed=seed)
        filesystem.restart()
        assert not clean_shutdown.is_clean(filesystem, "/d")


def test_meta_properties() -> None:
    filesystem = durable_directory("/d")
    assert read_meta_properties(filesystem, "/d") is None
    meta = MetaProperties(cluster_id="4L6g3nShT-eMCtK--X86sw", node_id=NodeId(2), directory_id="JsnDDNVyTL289kYk6sPzig")
    write_meta_properties(filesystem, "/d", meta)
    assert read_meta_properties(filesystem, "/d") == meta
    overwrite(filesystem, "/d/meta.properties", b"version=1\nnode.id=x\n")
    with pytest.raises(StorageError):
        read_meta_properties(filesystem, "/d")


def test_snapshot_round_trip_and_damage() -> None:
    content = encode_snapshot([ENTRY])
    assert decode_snapshot(content, path="x") == (ENTRY,)
    for damaged in (
        content[:-1],
        content[:3],
        content + b"!",
        b"\x00\x02" + content[2:],
        content[:9] + b"!" + content[10:],
    ):
        with pytest.raises(StorageError):
            decode_snapshot(damaged, path="x")


def test_newest_snapshot_passes_over_what_it_cannot_read() -> None:
    filesystem = durable_directory("/d")
    for offset in (10, 20, 30):
        write_snapshot(filesystem, "/d", Offset(offset), [ENTRY])
    overwrite(filesystem, "/d/00000000000000000020.snapshot", b"junk")
    assert newest_snapshot(filesystem, "/d", at_most=Offset(25)) == (10, (ENTRY,))
    assert snapshot_offsets(filesystem, "/d") == [10, 30]
    assert newest_snapshot(filesystem, "/d", at_most=Offset(5)) == (0, ())


@pytest.mark.parametrize(
    ("offsets", "bases", "left"),
    [([1, 2, 3, 4], [0, 1, 2], [1, 2, 4]), ([1, 3], [0, 5], []), ([5], [5], [5]), ([], [0], [])],
)
def test_stray_snapshots_go_but_for_the_largest(offsets: list[int], bases: list[int], left: list[int]) -> None:
    filesystem = durable_directory("/d")
    for offset in offsets:
        write_snapshot(filesystem, "/d", Offset(offset), [])
    delete_stray_snapshots(filesystem, "/d", [Offset(base) for base in bases])
    assert snapshot_offsets(filesystem, "/d") == left
