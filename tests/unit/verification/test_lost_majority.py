"""The point from which nothing is asked of what controllers had committed: a majority of their disks was lost."""

from collections.abc import Sequence
from typing import cast

from laststand.emulator.core import events
from laststand.emulator.core.types import CauseId, IncarnationId, MetadataOffset, NodeId, NodeRole
from laststand.emulator.verification.facts.quorum import NEW_DISK, MetadataLog, Quorum
from laststand.emulator.verification.tables.events import EventTable
from laststand.emulator.verification.tables.timeline import CollectedEvent

_HARNESS = 2000
_CAUSE = CauseId("harness")


class Events:
    def __init__(self) -> None:
        self._events: list[CollectedEvent[events.Event]] = []

    def add(self, node: int, event: events.Event) -> None:
        self._events.append(CollectedEvent(node=node, incarnation=0, sequence=len(self._events), event=event))

    def started(self, node: int, role: NodeRole, *, standby_controllers: tuple[NodeId, ...] = ()) -> None:
        self.add(
            node,
            events.NodeStarted(
                cause_id=_CAUSE,
                role=role,
                incarnation_id=IncarnationId("a"),
                switches={},
                properties={},
                wall_time_ns=0,
                standby_controllers=standby_controllers,
            ),
        )

    def lost(self, node: int, *, known_end: int = 0) -> None:
        self.add(
            _HARNESS,
            events.FaultInjected(
                cause_id=_CAUSE,
                fault=NEW_DISK,
                target=str(node),
                nodes=(NodeId(node),),
                effect="the disk is empty",
                metadata_offset=MetadataOffset(known_end),
                begun_ns=0,
                proved_ns=0,
            ),
        )

    def asked(self, api: str, node: int) -> None:
        order = f'{{"voter": [{node}, "disk"]}}'
        self.add(_HARNESS, events.OrderGiven(cause_id=_CAUSE, given_to=NodeId(100), api=api, order=order))

    def of(self, kind: type[events.Event]) -> Sequence[CollectedEvent[events.Event]]:
        return [each for each in self._events if isinstance(each.event, kind)]


def run_of_four() -> Events:
    """Three voters, and a controller that comes later, which has run."""
    run = Events()
    run.started(_HARNESS, NodeRole.HARNESS, standby_controllers=(NodeId(103),))
    for node in (100, 101, 102, 103):
        run.started(node, NodeRole.CONTROLLER)
    return run


def lost_a_majority(run: Events) -> bool:
    return Quorum(cast(EventTable, run), {}).lost_a_majority


def test_two_of_three_voters_are_a_majority_beside_one_that_is_none() -> None:
    run = run_of_four()
    run.lost(100)
    assert not lost_a_majority(run)
    run.lost(101)
    assert lost_a_majority(run)


def test_two_of_four_are_none_once_it_is_committed_that_it_was_added() -> None:
    run = run_of_four()
    run.asked("AddRaftVoter", 103)
    run.lost(100, known_end=10)
    run.lost(101, known_end=10)
    assert lost_a_majority(run), "the order may have been refused"
    run.add(100, events.OtherRecordCommitted(cause_id=_CAUSE, metadata_offset=MetadataOffset(5), record="KRaftVoters"))
    log = MetadataLog((), (), 10, None, {5: frozenset({100, 101, 102, 103})})
    assert not Quorum(cast(EventTable, run), {102: log}).lost_a_majority
