"""Each rule of Kafka's ``LogLoader``."""

from collections.abc import Sequence

import pytest

from laststand.emulator.core import inputs
from laststand.emulator.core.batch import EpochEntry
from laststand.emulator.core.errors import CorruptRecordError
from laststand.emulator.core.types import LeaderEpoch, Offset
from laststand.emulator.storage.batch_memory import BatchMemory
from laststand.emulator.storage.checkpoints import LEADER_EPOCH_CHECKPOINT, format_epochs
from laststand.emulator.storage.filesystem import read_file
from laststand.emulator.storage.meta_properties import write_topic_id
from laststand.emulator.storage.partition_log import LogSettings, PartitionLog
from laststand.emulator.storage.producer_snapshot import encode_snapshot
from laststand.emulator.storage.recovery import LogCheckpoints, load_log
from tests.memory_filesystem import MemoryFileSystem
from tests.unit.storage.log_fixtures import PARTITION, TOPIC_ID, durable_directory, make_batch, make_batches, overwrite

PATH = "/orders-0"
SETTINGS = LogSettings(index_interval_bytes=0)


def _name(base: int, suffix: str = ".log") -> str:
    return f"{PATH}/{base:020d}{suffix}"


def _disk(*segments: Sequence[int]) -> MemoryFileSystem:
    """Segments of one-record batches; each is named by its first offset."""
    filesystem = durable_directory(PATH)
    write_topic_id(filesystem, PATH, TOPIC_ID)
    for bases in segments:
        overwrite(filesystem, _name(bases[0]), b"".join(make_batches(bases)[1]))
        overwrite(filesystem, _name(bases[0], ".index"), b"")
    return filesystem


def _load(
    filesystem: MemoryFileSystem,
    *,
    is_clean: bool = False,
    recovery_point: int = 0,
    log_start: int = 0,
    settings: LogSettings = SETTINGS,
) -> tuple[PartitionLog, inputs.LoadedLog]:
    return load_log(
        filesystem,
        PATH,
        partition=PARTITION,
        is_clean=is_clean,
        checkpoints=LogCheckpoints(recovery_point=Offset(recovery_point), log_start_offset=Offset(log_start)),
        settings=settings,
        memory=BatchMemory(),
    )


def _size(*bases: int) -> int:
    return sum(map(len, make_batches(bases)[1]))


def _damage(filesystem: MemoryFileSystem, base: int, *, at: int, content: bytes) -> None:
    before = read_file(filesystem, _name(base))
    overwrite(filesystem, _name(base), before[:at] + content + before[at + len(content) :])


def test_clean_load_checks_nothing_and_trusts_to_the_end() -> None:
    filesystem = _disk(range(10))
    _damage(filesystem, 0, at=_size(0, 1) + 30, content=b"\xff")
    log, loaded = _load(filesystem, is_clean=True, recovery_point=3)
    assert (loaded.log_end_offset, loaded.recovery_point, len(loaded.batches)) == (10, 10, 10)
    assert loaded.is_clean
    assert log.recovery_point == 10


def test_unclean_load_cuts_at_the_first_bad_batch_and_drops_later_segments() -> None:
    filesystem = _disk(range(10), range(10, 20), range(20, 30))
    _damage(filesystem, 10, at=_size(10, 11, 12, 13) + 30, content=b"\xff")
    log, loaded = _load(filesystem)
    assert (loaded.log_end_offset, log.segment_bases) == (14, (0, 10))
    assert len(read_file(filesystem, _name(10))) == _size(10, 11, 12, 13)


def test_a_segment_that_lost_whole_batches_ends_the_log_if_holes_do() -> None:
    filesystem = _disk(range(4), range(10, 20), range(20, 30))
    log, loaded = _load(filesystem)
    assert (loaded.log_end_offset, log.segment_bases) == (30, (0, 10, 20))
    log, loaded = _load(filesystem, settings=LogSettings(index_interval_bytes=0, holes_end_logs=True))
    assert (loaded.log_end_offset, log.segment_bases) == (4, (0,))
    assert not filesystem.exists(_name(10))


def test_a_hole_below_the_recovery_point_is_not_looked_for() -> None:
    filesystem = _disk(range(4), range(10, 20), range(20, 30))
    settings = LogSettings(index_interval_bytes=0, holes_end_logs=True)
    assert _load(filesystem, recovery_point=20, settings=settings)[1].log_end_offset == 30
    assert _load(filesystem, is_clean=True, settings=settings)[1].log_end_offset == 30


def test_segments_below_the_recovery_points_own_are_not_read() -> None:
    filesystem = _disk(range(10), range(10, 20), range(20, 30))
    _damage(filesystem, 0, at=40, content=b"\xff")
    assert _load(filesystem, recovery_point=25)[1].log_end_offset == 30


def test_segment_of_the_recovery_point_is_read_from_its_base() -> None:
    filesystem = _disk(range(10))
    _damage(filesystem, 0, at=_size(0, 1) + 30, content=b"\xff")
    loaded = _load(filesystem, recovery_point=8)[1]
    assert (loaded.log_end_offset, loaded.recovery_point) == (2, 2)


@pytest.mark.parametrize("junk", [b"\x00" * 17, b"\x00" * 18, b"\xff" * 13, b"\x00" * 5000])
def test_junk_at_the_end_is_cut(junk: bytes) -> None:
    filesystem = _disk(range(5))
    overwrite(filesystem, _name(0), read_file(filesystem, _name(0)) + junk)
    loaded = _load(filesystem)[1]
    assert loaded.log_end_offset == 5
    assert len(read_file(filesystem, _name(0))) == _size(*range(5))


def test_zeros_end_a_clean_load_too() -> None:
    filesystem = _disk(range(5))
    overwrite(filesystem, _name(0), read_file(filesystem, _name(0)) + bytes(100))
    with pytest.raises(CorruptRecordError):
        _load(filesystem, is_clean=True)


def test_clean_load_leaves_a_torn_tail_where_it_is() -> None:
    filesystem = _disk(range(5))
    torn = read_file(filesystem, _name(0))[:-10]
    overwrite(filesystem, _name(0), torn)
    log, loaded = _load(filesystem, is_clean=True)
    assert loaded.log_end_offset == 4
    assert read_file(filesystem, _name(0)) == torn
    log.append(*make_batches([4]))
    assert log.batches[-1].base_offset == 4
    # The next recovery stops at the tear and loses what came after it.
    log.abandon()
    assert _load(filesystem)[1].log_end_offset == 4


def test_segment_without_index_is_recovered_alone_even_when_clean() -> None:
    filesystem = _disk(range(10), range(10, 20))
    filesystem.unlink(_name(0, ".index"))
    _damage(filesystem, 0, at=_size(0, 1, 2) + 30, content=b"\xff")
    log, loaded = _load(filesystem, is_clean=True)
    assert log.segment_bases == (0, 10)
    assert [batch.base_offset for batch in loaded.batches] == [0, 1, 2, *range(10, 20)]
    assert loaded.log_end_offset == 20


def test_indexes_are_rebuilt() -> None:
    filesystem = _disk(range(4))
    overwrite(filesystem, _name(0, ".index"), b"junk" * 100)
    _load(filesystem)
    step = _size(0)
    expected = b"".join(
        offset.to_bytes(4, "big") + position.to_bytes(4, "big")
        for offset, position in [(1, step), (2, 2 * step), (3, 3 * step)]
    )
    assert read_file(filesystem, _name(0, ".index")) == expected
    assert read_file(filesystem, _name(0, ".timeindex")) == (1000).to_bytes(8, "big") + (0).to_bytes(4, "big")


def test_offsets_that_go_backwards_empty_the_segment() -> None:
    filesystem = _disk(range(4), range(4, 6))
    batches = make_batches([0, 3, 1, 2])[1]
    overwrite(filesystem, _name(0), b"".join(batches))
    log, loaded = _load(filesystem)
    assert (loaded.log_end_offset, log.segment_bases, loaded.batches) == (0, (0,), ())


def test_log_below_its_start_is_dropped_and_restarts_there() -> None:
    log, loaded = _load(_disk(range(4)), log_start=7)
    assert (log.segment_bases, loaded.log_start_offset, loaded.log_end_offset) == ((7,), 7, 7)


def test_empty_directory_gets_a_segment_at_the_log_start() -> None:
    log, loaded = _load(_disk(), log_start=3)
    assert (log.segment_bases, loaded.log_end_offset) == ((3,), 3)


def test_leftovers_are_removed() -> None:
    filesystem = _disk(range(4))
    for name in ("00000000000000000009.index", "00000000000000000000.log.deleted", "x.cleaned", "checkpoint.tmp"):
        overwrite(filesystem, f"{PATH}/{name}", b"")
    _load(filesystem)
    assert filesystem.list_directory(PATH) == [
        "00000000000000000000.index",
        "00000000000000000000.log",
        "00000000000000000000.timeindex",
        LEADER_EPOCH_CHECKPOINT,
        "partition.metadata",
    ]


def test_swap_replaces_what_it_covers() -> None:
    filesystem = _disk(range(4), range(4, 8), range(8, 10))
    overwrite(filesystem, _name(0) + ".swap", b"".join(make_batches([0, 2, 6])[1]))
    log, loaded = _load(filesystem)
    assert log.segment_bases == (0, 8)
    assert [batch.base_offset for batch in loaded.batches] == [0, 2, 6, 8, 9]


def test_segment_whose_offsets_overflow_is_split() -> None:
    filesystem = _disk([0])
    overwrite(filesystem, _name(0), b"".join(make_batches([0, 1, 1 << 31, (1 << 31) + 1])[1]))
    log, loaded = _load(filesystem)
    assert log.segment_bases == (0, 1 << 31)
    assert [batch.base_offset for batch in loaded.batches] == [0, 1, 1 << 31, (1 << 31) + 1]
    assert loaded.log_end_offset == (1 << 31) + 2


@pytest.mark.parametrize(
    ("on_disk", "expected"),
    [
        ([], [(1, 0), (3, 2)]),
        ([(1, 0)], [(1, 0), (3, 2)]),
        ([(1, 0), (3, 2), (5, 9)], [(1, 0), (3, 2), (5, 9)]),
        ([(2, 0)], [(2, 0), (3, 2)]),
        ([(1, 0), (2, 2)], [(1, 0), (3, 2)]),
    ],
)
def test_epochs_are_added_for_good_from_scanned_batches_only_above_the_newest(
    on_disk: list[tuple[int, int]], expected: list[tuple[int, int]]
) -> None:
    filesystem = _disk([0])
    made = [make_batch(base, leader_epoch=epoch)[1] for base, epoch in ((0, 1), (1, 1), (2, 3))]
    overwrite(filesystem, _name(0), b"".join(made))
    entries = [EpochEntry(LeaderEpoch(epoch), Offset(start)) for epoch, start in on_disk]
    overwrite(filesystem, f"{PATH}/{LEADER_EPOCH_CHECKPOINT}", format_epochs(entries).encode())
    for is_clean, epochs in ((True, on_disk), (False, expected), (True, expected)):
        loaded = _load(filesystem, is_clean=is_clean)[1]
        assert [(entry.leader_epoch, entry.start_offset) for entry in loaded.epochs] == epochs


@pytest.mark.parametrize(("trims_first", "expected"), [(True, [(1, 0), (3, 2)]), (False, [(5, 9)])])
def test_an_epoch_beyond_the_end_hides_those_of_scanned_batches_only_where_it_is_forgotten_last(
    *, trims_first: bool, expected: list[tuple[int, int]]
) -> None:
    filesystem = _disk([0])
    made = [make_batch(base, leader_epoch=epoch)[1] for base, epoch in ((0, 1), (1, 1), (2, 3))]
    overwrite(filesystem, _name(0), b"".join(made))
    overwrite(
        filesystem, f"{PATH}/{LEADER_EPOCH_CHECKPOINT}", format_epochs([EpochEntry(LeaderEpoch(5), Offset(9))]).encode()
    )
    settings = LogSettings(index_interval_bytes=0, recovery_trims_epochs=trims_first)
    for is_clean in (False, True):
        loaded = _load(filesystem, is_clean=is_clean, settings=settings)[1]
        assert [(entry.leader_epoch, entry.start_offset) for entry in loaded.epochs] == expected


def test_batches_below_the_recovery_point_have_their_epochs_where_a_log_ends_with_them() -> None:
    """The newest segment lost all that it had, and the epoch that was left begins there: S48."""
    filesystem = _disk([0])
    overwrite(filesystem, _name(0), b"".join(make_batch(base, leader_epoch=base)[1] for base in range(3)))
    overwrite(filesystem, _name(3), b"")
    overwrite(
        filesystem, f"{PATH}/{LEADER_EPOCH_CHECKPOINT}", format_epochs([EpochEntry(LeaderEpoch(5), Offset(9))]).encode()
    )
    settings = LogSettings(index_interval_bytes=0, recovery_trims_epochs=True)
    loaded = _load(filesystem, recovery_point=3, settings=settings)[1]
    assert [(entry.leader_epoch, entry.start_offset) for entry in loaded.epochs] == [(0, 0), (1, 1), (2, 2)]


def test_epochs_of_later_segments_stay_where_one_lacks_its_index() -> None:
    filesystem = _disk([0], [3])
    overwrite(filesystem, _name(0), b"".join(make_batch(base, leader_epoch=base)[1] for base in range(3)))
    overwrite(filesystem, _name(3), make_batch(3, leader_epoch=5)[1])
    filesystem.unlink(_name(0, ".index"))
    on_disk = [EpochEntry(LeaderEpoch(epoch), Offset(start)) for epoch, start in ((0, 0), (1, 1), (2, 2), (5, 3))]
    overwrite(filesystem, f"{PATH}/{LEADER_EPOCH_CHECKPOINT}", format_epochs(on_disk).encode())
    settings = LogSettings(index_interval_bytes=0, recovery_trims_epochs=True)
    assert _load(filesystem, is_clean=True, settings=settings)[1].epochs == tuple(on_disk)


def test_newest_readable_producer_snapshot_is_taken() -> None:
    filesystem = _disk([0])
    made = [make_batch(base, producer_id=7, base_sequence=base)[1] for base in range(4)]
    overwrite(filesystem, _name(0), b"".join(made))
    log, _ = _load(filesystem)
    log.close()
    loaded = _load(filesystem, is_clean=True)[1]
    (entry,) = loaded.producers
    assert (entry.producer_id, entry.last_sequence, entry.last_offset, loaded.producers_offset) == (7, 3, 3, 4)

    overwrite(filesystem, _name(4, ".snapshot"), encode_snapshot(()) + b"!")
    loaded = _load(filesystem, is_clean=True)[1]
    assert (loaded.producers, loaded.producers_offset) == ((), 0)


def test_topic_id_is_none_where_its_file_is_missing() -> None:
    filesystem = _disk(range(2))
    assert _load(filesystem)[1].topic_id == TOPIC_ID
    filesystem.unlink(f"{PATH}/partition.metadata")
    assert _load(filesystem)[1].topic_id is None


def test_recovery_is_idempotent() -> None:
    filesystem = _disk(range(10), range(10, 20))
    _damage(filesystem, 10, at=_size(10, 11) + 30, content=b"\xff")
    first = _load(filesystem)[1]
    assert _load(filesystem)[1] == first
