"""Each invariant of a hosted partition fires on a state that breaks it."""

import contextlib

import msgspec
import pytest

from laststand.emulator.core.batch import EpochEntry
from laststand.emulator.core.broker.replicas.epoch_cache import LeaderEpochCache
from laststand.emulator.core.broker.replicas.invariants import check_hosted_partition, check_progress, partition_mark
from laststand.emulator.core.broker.replicas.isr import Committed
from laststand.emulator.core.broker.replicas.partition import PartitionRole
from laststand.emulator.core.errors import InvariantError
from laststand.emulator.core.types import BrokerId, LeaderEpoch, LeaderRecoveryState, Offset, PartitionEpoch
from tests.unit.core.broker.hosting import FIRST, OWN, SECOND, Hosting


def leading() -> Hosting:
    hosting = Hosting(records=5)
    hosting.lead(OWN)
    check_hosted_partition(hosting.partition)
    return hosting


@pytest.mark.parametrize(("log_start", "high_watermark"), [(0, 6), (3, 2)])
def test_d9_bounds(log_start: int, high_watermark: int) -> None:
    hosting = leading()
    hosting.partition.log.log_start_offset = Offset(log_start)
    hosting.partition.log.high_watermark = Offset(high_watermark)
    with pytest.raises(InvariantError, match="D9"):
        check_hosted_partition(hosting.partition)


@pytest.mark.parametrize("entries", [((1, 0), (1, 5)), ((0, 3), (1, 3)), ((0, 0), (1, 6)), ((0, 0),), ()])
def test_d8_epoch_cache(entries: tuple[tuple[int, int], ...]) -> None:
    hosting = leading()
    hosting.partition.log.epochs = LeaderEpochCache(
        EpochEntry(LeaderEpoch(epoch), Offset(start)) for epoch, start in entries
    )
    with pytest.raises(InvariantError, match="D8"):
        check_hosted_partition(hosting.partition)


@pytest.mark.parametrize("isr", [(), (FIRST,), (OWN, OWN), (OWN, 9)])
def test_h5_isr_of_a_leader(isr: tuple[int, ...]) -> None:
    hosting = leading()
    hosting.partition.isr_state = Committed(isr)  # type: ignore[arg-type]  # not all are brokers
    with pytest.raises(InvariantError, match=r"H5|M1"):
        check_hosted_partition(hosting.partition)


def test_h5_isr_of_a_follower() -> None:
    hosting = Hosting()
    hosting.follow(FIRST)
    check_hosted_partition(hosting.partition)
    hosting.partition.isr_state = Committed((FIRST,))
    with pytest.raises(InvariantError, match="H5"):
        check_hosted_partition(hosting.partition)


def test_h5_followers_of_a_leader() -> None:
    hosting = leading()
    hosting.partition.replicas = (OWN, FIRST)
    with pytest.raises(InvariantError, match="H5"):
        check_hosted_partition(hosting.partition)


def test_h5_followers_of_a_follower() -> None:
    hosting = leading()
    hosting.partition.role = PartitionRole.FOLLOWER
    hosting.partition.isr_state = Committed(())
    with pytest.raises(InvariantError, match="H5"):
        check_hosted_partition(hosting.partition)


@pytest.mark.parametrize(("isr", "is_sound"), [((OWN,), True), ((OWN, FIRST), False)])
def test_m7_isr_of_a_leader_that_recovers(isr: tuple[BrokerId, ...], *, is_sound: bool) -> None:
    hosting = leading()
    hosting.partition.isr_state = Committed(isr)
    check_hosted_partition(hosting.partition)
    hosting.partition.leader_recovery_state = LeaderRecoveryState.RECOVERING
    with contextlib.nullcontext() if is_sound else pytest.raises(InvariantError, match="M7"):
        check_hosted_partition(hosting.partition)


def test_a_follower_of_a_leader_that_recovers_is_sound() -> None:
    hosting = Hosting()
    hosting.follow(FIRST)
    hosting.partition.leader_recovery_state = LeaderRecoveryState.RECOVERING
    check_hosted_partition(hosting.partition)


def test_all_replicas_may_be_in_sync() -> None:
    hosting = Hosting()
    hosting.lead(OWN, FIRST, SECOND)
    check_hosted_partition(hosting.partition)


def test_an_empty_log_and_an_epoch_without_records_are_sound() -> None:
    hosting = Hosting()
    hosting.lead(OWN)
    check_hosted_partition(hosting.partition)


def test_what_stays_as_it_was_has_gone_nowhere_back() -> None:
    hosting = leading()
    check_progress(hosting.partition, partition_mark(hosting.partition))


def test_h3_high_watermark_of_a_leader() -> None:
    hosting = leading()
    mark = partition_mark(hosting.partition)
    hosting.partition.log.high_watermark = Offset(4)
    with pytest.raises(InvariantError, match="H3"):
        check_progress(hosting.partition, mark)


def test_h3_of_a_recovering_leader_and_of_a_broker_that_did_not_lead() -> None:
    hosting = leading()
    mark = partition_mark(hosting.partition)
    hosting.partition.log.high_watermark = Offset(4)
    check_progress(hosting.partition, msgspec.structs.replace(mark, is_leader=False))
    hosting.partition.leader_recovery_state = LeaderRecoveryState.RECOVERING
    check_progress(hosting.partition, mark)
    hosting.partition.leader_recovery_state = LeaderRecoveryState.RECOVERED
    hosting.partition.role = PartitionRole.FOLLOWER
    check_progress(hosting.partition, mark)


@pytest.mark.parametrize(("leader_epoch", "partition_epoch"), [(1, 0), (0, 1), (0, 2)])
def test_m9_epochs(leader_epoch: int, partition_epoch: int) -> None:
    hosting = leading()
    mark = partition_mark(hosting.partition)
    hosting.partition.leader_epoch = LeaderEpoch(leader_epoch)
    hosting.partition.partition_epoch = PartitionEpoch(partition_epoch)
    with pytest.raises(InvariantError, match="M9"):
        check_progress(hosting.partition, mark)
