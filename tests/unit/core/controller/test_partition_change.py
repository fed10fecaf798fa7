"""Effects of a partition's change on the replicas beside the ISR (Kafka's ``PartitionChangeBuilder``)."""

import msgspec
import pytest

from laststand.emulator.core import metadata_version
from laststand.emulator.core.controller.min_isr import MinIsr
from laststand.emulator.core.controller.partition_change import PartitionRules, PartitionTarget, next_partition_change
from laststand.emulator.core.image import PartitionState
from laststand.emulator.core.switches import ClearElr, LastKnown
from laststand.emulator.core.types import BrokerId, ElectionType, LeaderEpoch, NodeId, PartitionEpoch, TopicId

RULES = PartitionRules(
    metadata_level=metadata_version.NO_BUMP_ON_SHRINK,
    elr_enabled=True,
    last_known=LastKnown.KIP,
    elr_within_replicas=True,
    reassignment_needs_all=True,
    reassignment_requires_min_isr=False,
    clear_elr=ClearElr.SATISFIED,
    downgrade_ignores_elr=True,
)
FIRST, SECOND, THIRD, FOURTH = (BrokerId(NodeId(index)) for index in range(4))
OFFLINE = PartitionState(
    topic_id=TopicId("topic"),
    replicas=(FIRST, SECOND, THIRD),
    isr=(),
    leader=None,
    leader_epoch=LeaderEpoch(3),
    partition_epoch=PartitionEpoch(3),
)


@pytest.mark.parametrize(("min_isr", "elr"), [(1, ()), (2, (THIRD,))])
def test_a_leader_from_the_elr_that_may_commit_alone_has_no_candidate_beside_it(
    *, min_isr: int, elr: tuple[BrokerId, ...]
) -> None:
    offline = msgspec.structs.replace(OFFLINE, elr=(SECOND, THIRD), last_known_elr=(FIRST,))
    target = PartitionTarget(acceptable=frozenset({SECOND}))
    change = next_partition_change(offline, target, partition=0, rules=RULES, min_isr=MinIsr(configured=min_isr))
    assert change is not None
    after = offline.after(change.record)
    assert (after.leader, after.isr, after.elr) == (SECOND, (SECOND,), elr)
    assert after.last_known_elr == ((FIRST,) if elr else ())


@pytest.mark.parametrize(("min_isr", "remembered"), [(1, ()), (2, (THIRD,))])
def test_an_unclean_leader_that_may_commit_alone_ends_the_memory_of_the_others(
    *, min_isr: int, remembered: tuple[BrokerId, ...]
) -> None:
    offline = msgspec.structs.replace(OFFLINE, last_known_elr=(SECOND, THIRD))
    target = PartitionTarget(acceptable=frozenset({SECOND}), election=ElectionType.UNCLEAN)
    change = next_partition_change(offline, target, partition=0, rules=RULES, min_isr=MinIsr(configured=min_isr))
    assert change is not None
    after = offline.after(change.record)
    assert (after.leader, after.isr, after.last_known_elr) == (SECOND, (SECOND,), remembered)


@pytest.mark.parametrize(("partition0_replicas", "elr"), [(None, (SECOND, THIRD)), (1, ()), (3, (SECOND, THIRD))])
def test_the_isr_of_a_partition_is_measured_by_its_own_replicas(
    *, partition0_replicas: int | None, elr: tuple[BrokerId, ...]
) -> None:
    led = msgspec.structs.replace(OFFLINE, isr=(FIRST, SECOND, THIRD), leader=FIRST)
    target = PartitionTarget(acceptable=frozenset({FIRST}), isr=(FIRST,))
    min_isr = MinIsr(configured=2, partition0_replicas=partition0_replicas)
    change = next_partition_change(led, target, partition=1, rules=RULES, min_isr=min_isr)
    assert change is not None
    assert led.after(change.record).elr == elr


def test_min_isr_follows_the_replicas_that_a_change_leaves() -> None:
    led = msgspec.structs.replace(OFFLINE, isr=(FIRST,), elr=(SECOND, THIRD), leader=FIRST)
    target = PartitionTarget(
        acceptable=frozenset({FIRST}), replicas=(FIRST, SECOND, THIRD), removing_replicas=(SECOND, THIRD)
    )
    change = next_partition_change(led, target, partition=1, rules=RULES, min_isr=MinIsr(configured=2))
    assert change is not None
    after = led.after(change.record)
    assert (after.replicas, after.elr, change.effective_min_isr) == ((FIRST,), (), 1)


@pytest.mark.parametrize(("replicas", "remembered"), [((FIRST, SECOND), FIRST), ((SECOND, THIRD), None)])
def test_a_partition_without_leader_remembers_its_last_one_as_long_as_that_is_a_replica(
    replicas: tuple[BrokerId, ...], remembered: BrokerId | None
) -> None:
    # KIP-966, LastKnownLeader: nothing that happens while there is no leader replaces it.
    offline = msgspec.structs.replace(OFFLINE, elr=(SECOND,), last_known_leader=FIRST)
    target = PartitionTarget(acceptable=frozenset(), replicas=replicas)
    change = next_partition_change(offline, target, partition=0, rules=RULES, min_isr=MinIsr(configured=2))
    assert change is not None
    after = offline.after(change.record)
    assert (after.leader, after.leader_epoch, after.last_known_leader) == (None, 4, remembered)


def test_a_leader_ends_the_memory_of_the_last_one_and_not_that_of_the_elr() -> None:
    offline = msgspec.structs.replace(OFFLINE, elr=(SECOND,), last_known_leader=FIRST, last_known_elr=(THIRD,))
    target = PartitionTarget(acceptable=frozenset({SECOND}))
    change = next_partition_change(offline, target, partition=0, rules=RULES, min_isr=MinIsr(configured=2))
    assert change is not None
    after = offline.after(change.record)
    assert (after.leader, after.last_known_leader, after.last_known_elr) == (SECOND, None, (THIRD,))


def test_a_replica_that_held_nothing_that_counts_is_not_remembered_when_it_restarts_uncleanly() -> None:
    led = msgspec.structs.replace(OFFLINE, isr=(FIRST, SECOND), leader=FIRST)
    target = PartitionTarget(acceptable=frozenset({FIRST}), isr=(FIRST,), unclean_replicas=frozenset({THIRD}))
    change = next_partition_change(led, target, partition=0, rules=RULES, min_isr=MinIsr(configured=2))
    assert change is not None
    after = led.after(change.record)
    assert (after.elr, after.last_known_elr) == ((SECOND,), ())


@pytest.mark.parametrize(("elr_within_replicas", "leader"), [(True, FIRST), (False, None)])
def test_an_eligible_broker_that_is_moved_away_is_not_waited_for(
    *, elr_within_replicas: bool, leader: BrokerId | None
) -> None:
    offline = msgspec.structs.replace(OFFLINE, elr=(THIRD,), last_known_leader=FIRST)
    target = PartitionTarget(acceptable=frozenset({FIRST}), replicas=(FIRST, SECOND))
    rules = msgspec.structs.replace(RULES, elr_within_replicas=elr_within_replicas)
    change = next_partition_change(offline, target, partition=0, rules=rules, min_isr=MinIsr(configured=2))
    assert change is not None
    assert offline.after(change.record).leader == leader


@pytest.mark.parametrize(("isr", "leader_epoch"), [((FIRST, SECOND), 3), ((FIRST,), 4)])
def test_in_old_metadata_versions_an_isr_that_shrinks_begins_a_leader_epoch_and_no_other_does(
    isr: tuple[BrokerId, ...], leader_epoch: int
) -> None:
    # KAFKA-15021.
    led = msgspec.structs.replace(OFFLINE, isr=(FIRST, SECOND), leader=FIRST)
    target = PartitionTarget(acceptable=frozenset({FIRST, SECOND}), isr=isr, adding_replicas=(THIRD,))
    rules = msgspec.structs.replace(RULES, metadata_level=metadata_version.NO_BUMP_ON_SHRINK - 1)
    change = next_partition_change(led, target, partition=0, rules=rules, min_isr=MinIsr(configured=1))
    assert change is not None
    assert led.after(change.record).leader_epoch == leader_epoch


@pytest.mark.parametrize(
    ("target", "isr", "completes_with_all", "completes_with_added"),
    [
        ((SECOND, THIRD, FOURTH), (FIRST, FOURTH), False, True),
        ((SECOND, THIRD, FOURTH), (FIRST, SECOND), False, False),
        ((SECOND, THIRD, FOURTH), (SECOND, THIRD, FOURTH), True, True),
        ((THIRD, FOURTH), (FIRST, FOURTH), False, False),
    ],
)
def test_a_reassignment_completes_with_all_its_targets_in_sync_or_with_those_that_it_adds(
    *, target: tuple[BrokerId, ...], isr: tuple[BrokerId, ...], completes_with_all: bool, completes_with_added: bool
) -> None:
    # KAFKA-15665, KAFKA-19975: what is added suffices only where no fewer are added than leave.
    before = (FIRST, SECOND, THIRD)
    removing = tuple(broker_id for broker_id in before if broker_id not in target)
    moving = msgspec.structs.replace(
        OFFLINE, replicas=(*target, *removing), isr=(FIRST,), leader=FIRST, adding_replicas=(FOURTH,),
        removing_replicas=removing,
    )  # fmt: skip
    completed = []
    for needs_all in (True, False):
        rules = msgspec.structs.replace(RULES, reassignment_needs_all=needs_all)
        change = next_partition_change(
            moving,
            PartitionTarget(acceptable=frozenset({*before, FOURTH}), isr=isr),
            partition=0,
            rules=rules,
            min_isr=MinIsr(configured=2),
        )
        assert change is not None
        after = moving.after(change.record)
        completed.append(after.replicas == target and not after.adding_replicas and set(after.isr) <= set(target))
    assert completed == [completes_with_all, completes_with_added]


@pytest.mark.parametrize(
    ("target", "isr", "completes"),
    [
        ((SECOND, THIRD, FOURTH), (FIRST, FOURTH), False),
        ((SECOND, THIRD, FOURTH), (FIRST, SECOND, FOURTH), True),
        ((SECOND, THIRD, FOURTH), (FIRST, SECOND, THIRD), False),
        ((THIRD, FOURTH), (FIRST, FOURTH), False),
        ((FOURTH,), (FIRST, FOURTH), True),
    ],
)
def test_by_the_kip_a_reassignment_completes_with_those_that_it_adds_and_min_isr(
    *, target: tuple[BrokerId, ...], isr: tuple[BrokerId, ...], completes: bool
) -> None:
    # Min ISR of the final replicas: one that is left alone is enough for itself.
    before = (FIRST, SECOND, THIRD)
    removing = tuple(broker_id for broker_id in before if broker_id not in target)
    moving = msgspec.structs.replace(
        OFFLINE, replicas=(*target, *removing), isr=(FIRST,), leader=FIRST, adding_replicas=(FOURTH,),
        removing_replicas=removing,
    )  # fmt: skip
    change = next_partition_change(
        moving,
        PartitionTarget(acceptable=frozenset({*before, FOURTH}), isr=isr),
        partition=0,
        rules=msgspec.structs.replace(RULES, reassignment_needs_all=False, reassignment_requires_min_isr=True),
        min_isr=MinIsr(configured=2),
    )
    assert change is not None
    assert (moving.after(change.record).replicas == target) is completes


def test_a_replica_that_is_added_and_removed_again_does_not_block_a_reassignment() -> None:
    # An empty new list of those that are added leaves what an earlier reassignment put there, as in Kafka.
    moving = msgspec.structs.replace(
        OFFLINE, replicas=(FIRST, SECOND, THIRD, FOURTH), isr=(FIRST, SECOND), leader=FIRST,
        adding_replicas=(FOURTH,), removing_replicas=(FOURTH,),
    )  # fmt: skip
    change = next_partition_change(
        moving,
        PartitionTarget(acceptable=frozenset({FIRST, SECOND, THIRD, FOURTH}), isr=(FIRST, SECOND, THIRD, FOURTH)),
        partition=0,
        rules=msgspec.structs.replace(RULES, reassignment_needs_all=False, reassignment_requires_min_isr=True),
        min_isr=MinIsr(configured=2),
    )
    assert change is not None
    assert moving.after(change.record).isr == (FIRST, SECOND, THIRD)


@pytest.mark.parametrize(
    ("asks_for_min_isr", "leader", "replicas"),
    [
        (True, THIRD, (SECOND, THIRD, FIRST, FOURTH)),
        (False, THIRD, (SECOND, THIRD, FIRST)),
        (True, FIRST, (SECOND, THIRD, FIRST)),
    ],
)
def test_an_unclean_leader_is_too_few_for_a_reassignment_to_complete(
    *, asks_for_min_isr: bool, leader: BrokerId, replicas: tuple[BrokerId, ...]
) -> None:
    # It would complete by the ISR of before, which is gone with the election, and the removed replica with it.
    moving = msgspec.structs.replace(
        OFFLINE, replicas=(SECOND, THIRD, FIRST, FOURTH), isr=(FIRST,), leader=FIRST, adding_replicas=(FIRST,),
        removing_replicas=(FOURTH,),
    )  # fmt: skip
    change = next_partition_change(
        moving,
        PartitionTarget(acceptable=frozenset({leader}), election=ElectionType.UNCLEAN),
        partition=0,
        rules=msgspec.structs.replace(
            RULES, reassignment_needs_all=False, reassignment_requires_min_isr=asks_for_min_isr
        ),
        min_isr=MinIsr(configured=1),
    )
    assert change is not None
    after = moving.after(change.record)
    assert (after.leader, after.isr, after.replicas) == (leader, (leader,), replicas)
    assert bool(after.adding_replicas) is (FOURTH in replicas)


def test_a_reassignment_asks_for_no_more_members_than_it_leaves_replicas() -> None:
    # Min ISR as Kafka has it, capped by the replicas of partition 0.
    moving = msgspec.structs.replace(
        OFFLINE, replicas=(FIRST, SECOND, THIRD), isr=(FIRST,), leader=FIRST, removing_replicas=(THIRD,)
    )
    change = next_partition_change(
        moving,
        PartitionTarget(acceptable=frozenset({FIRST, SECOND, THIRD}), isr=(FIRST, SECOND)),
        partition=0,
        rules=msgspec.structs.replace(RULES, reassignment_needs_all=False, reassignment_requires_min_isr=True),
        min_isr=MinIsr(configured=3, partition0_replicas=3),
    )
    assert change is not None
    assert moving.after(change.record).replicas == (FIRST, SECOND)
