"""Disks of controllers that were lost at one time: of so many, nothing is asked of what they had committed."""

from collections.abc import Callable, Mapping, Sequence
from typing import cast

import pytest

from laststand.emulator.core import events
from laststand.emulator.core.quorum.batches import KRaftVersion, KRaftVoters, LeaderChange, QuorumBatch
from laststand.emulator.core.quorum.settings import initial_directory_id
from laststand.emulator.core.quorum.voter_set import DirectoryId, ReplicaKey, Voter, VoterSet
from laststand.emulator.core.types import CauseId, IncarnationId, LeaderEpoch, MetadataOffset, NodeId, NodeRole
from laststand.emulator.storage.metadata_log import log_content
from laststand.emulator.verification.facts.quorum import MetadataLog, Quorum
from laststand.emulator.verification.reading.metadata_log import read_metadata_log
from laststand.emulator.verification.tables.events import EventTable
from laststand.emulator.verification.tables.timeline import CollectedEvent

HARNESS = -1
NODES = (100, 101, 102)
CAUSE = CauseId("unit")
REMOVED = {1: frozenset(NODES), 20: frozenset({100, 101})}
"""Sets of voters by offset: 102 is removed at 20."""


class Told:
    """Stands in for the table of events."""

    def __init__(self, harness: Sequence[events.Event], committed: Sequence[int]) -> None:
        started = [
            events.NodeStarted(
                cause_id=CAUSE,
                role=NodeRole.CONTROLLER,
                incarnation_id=IncarnationId(f"process-{node}"),
                switches={},
                properties={},
                wall_time_ns=0,
            )
            for node in NODES
        ]
        changed = [
            events.OtherRecordCommitted(cause_id=CAUSE, metadata_offset=MetadataOffset(offset), record="KRaftVoters")
            for offset in committed
        ]
        of_nodes = zip(NODES, started, strict=True)
        self._events = [
            *(CollectedEvent(node=node, incarnation=0, sequence=0, event=event) for node, event in of_nodes),
            *self._collected(HARNESS, harness),
            *self._collected(100, changed),
        ]

    def _collected(self, node: int, of: Sequence[events.Event]) -> list[CollectedEvent[events.Event]]:
        return [
            CollectedEvent(node=node, incarnation=0, sequence=place, event=event) for place, event in enumerate(of, 1)
        ]

    def add(self, node: int, event: events.Event) -> None:
        self._events.append(CollectedEvent(node=node, incarnation=0, sequence=100, event=event))

    def of(self, kind: type[events.Event]) -> list[CollectedEvent[events.Event]]:
        return [each for each in self._events if isinstance(each.event, kind)]


def replaced(node: int, *, known_end: int | None) -> events.FaultInjected:
    return events.FaultInjected(
        cause_id=CAUSE,
        fault="replace_disk",
        target=str(node),
        nodes=(NodeId(node),),
        effect="the disk is empty",
        metadata_offset=None if known_end is None else MetadataOffset(known_end),
    )


def ordered(api: str, node: int) -> events.OrderGiven:
    return events.OrderGiven(
        cause_id=CAUSE, given_to=NodeId(100), api=api, order=f'{{"voter":[{node},"disk-{node}"],"listener":""}}'
    )


def lost_a_majority(
    *harness: events.Event, sets: Mapping[int, frozenset[int]] = REMOVED, committed: Sequence[int] = (1, 20)
) -> bool:
    log = MetadataLog((), (), 30, None, sets)
    return Quorum(cast(EventTable, Told(harness, committed)), {100: log}).lost_a_majority


def test_one_of_three_disks_is_no_majority_and_two_are() -> None:
    assert not lost_a_majority(replaced(101, known_end=10))
    assert lost_a_majority(replaced(101, known_end=10), replaced(102, known_end=11))


def test_a_voter_that_was_added_again_counts_again() -> None:
    first, again = replaced(101, known_end=10), ordered("AddRaftVoter", 101)
    assert not lost_a_majority(first, again, replaced(102, known_end=11))


def test_a_removed_voter_does_not_count_once_the_removal_is_committed() -> None:
    order = ordered("RemoveRaftVoter", 102)
    assert not lost_a_majority(order, replaced(102, known_end=25), replaced(101, known_end=26))
    assert not lost_a_majority(order, replaced(101, known_end=25)), "one of two is no majority"


@pytest.mark.parametrize("known_end", [10, 20])
def test_a_requested_removal_is_no_removal_yet(known_end: int) -> None:
    order = ordered("RemoveRaftVoter", 102)
    both = (replaced(102, known_end=known_end), replaced(101, known_end=known_end))
    assert lost_a_majority(order, *both), "it is committed later"
    assert lost_a_majority(order, *both, committed=(1,)), "it is never committed, though a log has it"
    assert lost_a_majority(order, *both, sets={}, committed=()), "it was refused"


def test_without_known_commits_each_set_of_voters_may_have_been_in_force() -> None:
    alone = {1: frozenset(NODES), 20: frozenset({100, 101}), 25: frozenset({101})}
    assert lost_a_majority(replaced(101, known_end=None), sets=alone, committed=(1, 20, 25))
    assert lost_a_majority(replaced(101, known_end=10), sets=alone, committed=(1, 20, 25)), "who is left lacks all"


def test_the_last_leaders_log_says_which_of_two_sets_at_one_offset_was_committed() -> None:
    told = Told([replaced(101, known_end=25), replaced(102, known_end=26)], (1, 20))
    elected = events.QuorumLeaderElected(
        cause_id=CAUSE, directory_id=None, quorum_epoch=LeaderEpoch(2), log_end_offset=MetadataOffset(20)
    )
    told.add(100, elected)
    leaders = MetadataLog((), (), 30, None, {1: frozenset(NODES), 20: frozenset({100, 102})})
    never_committed = MetadataLog((), (), 21, None, {1: frozenset(NODES), 20: frozenset({102})})
    quorum = Quorum(cast(EventTable, told), {100: leaders, 102: never_committed})
    assert not quorum.lost_a_majority


def named(node: int) -> DirectoryId:
    """Returns the name that the disks of virtual time have, which is no UUID."""
    return DirectoryId(f"disk-{node}")


@pytest.mark.parametrize(
    "disk", [lambda node: initial_directory_id("some", NodeId(node)), named], ids=["process", "virtual time"]
)
def test_the_sets_of_voters_are_read_from_a_log(disk: Callable[[int], DirectoryId]) -> None:
    def voters(*nodes: int) -> KRaftVoters:
        keys = [ReplicaKey(NodeId(node), disk(node)) for node in nodes]
        listeners = ["localhost:9093", ""]
        return KRaftVoters(
            voters=VoterSet.of(Voter(key=key, listener=listeners[index % 2]) for index, key in enumerate(keys))
        )

    first = (
        LeaderChange(leader_id=NodeId(100), voters=(NodeId(100),), granting_voters=()),
        KRaftVersion(level=1),
        voters(*NODES),
    )
    batches = [
        QuorumBatch(base_offset=MetadataOffset(0), leader_epoch=LeaderEpoch(1), control=first),
        QuorumBatch(base_offset=MetadataOffset(3), leader_epoch=LeaderEpoch(1), control=(voters(101, 102),)),
    ]
    log = read_metadata_log(log_content(batches))
    assert log.problem is None
    assert log.voters == {2: frozenset(NODES), 3: frozenset({101, 102})}
