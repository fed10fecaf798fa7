"""Q8 and Q9 fire on the one history that breaks each, and on no other of these."""

from collections.abc import Callable
from typing import Final

import pytest

from laststand.emulator.core.quorum import events
from laststand.emulator.core.quorum.voter_set import ReplicaKey
from laststand.emulator.core.types import LeaderEpoch, MetadataOffset, NodeId
from laststand.emulator.plan.channels import Link
from laststand.emulator.simulator.network.network import Network
from laststand.emulator.simulator.quorum.availability import SLACK_MS, QuorumAvailability

_SETTLE_MS: Final = 10_000
_RESIGN_MS: Final = 3_000
_LEADER, _FOLLOWER, _OTHER = _IDS = tuple(NodeId(number) for number in (100, 101, 102))


class _Node:
    """A controller that runs for the whole history."""

    incarnation = 1
    leads = False
    leader_epoch = LeaderEpoch(1)


class World:
    """Three controllers, all of which run; 100 leads epoch 1 from the start on."""

    def __init__(self) -> None:
        self.network = Network()
        self.nodes = {node_id: _Node() for node_id in _IDS}
        self.fired: set[str] = set()
        self.voters: dict[NodeId, tuple[NodeId, ...]] = {}
        self._availability = QuorumAvailability(
            self.nodes,
            self,
            self.network,
            settle_ms=_SETTLE_MS,
            resign_ms=_RESIGN_MS,
            voters=lambda node_id: self.voters.get(node_id, _IDS),
            report=lambda check_id, _: self.fired.add(check_id),
        )
        self.nodes[_LEADER].leads = True
        elected = events.LeaderElected(
            replica=ReplicaKey(_LEADER), leader_epoch=LeaderEpoch(1), start_offset=MetadataOffset(0)
        )
        self._availability.recorded(_LEADER, elected, 0)

    def is_sound(self, node_id: NodeId) -> bool:
        """Returns whether a controller runs as it should: all do."""
        return True

    def is_running(self, node_id: NodeId) -> bool:
        """Returns whether a controller has a process: all have one."""
        return True

    def cut(self, *links: tuple[NodeId, NodeId]) -> None:
        """Cuts links; others carry again what they are given."""
        self.network.cuts.clear()
        self.network.cuts.update(Link(source, target) for source, target in links)

    def look(self, now_ms: int) -> None:
        """Lets time pass."""
        self._availability.look(now_ms)

    def depose(self, now_ms: int) -> None:
        """The leader hears of a higher epoch, which another voter has raised."""
        raised = events.VoteGranted(
            replica=ReplicaKey(_OTHER), leader_epoch=LeaderEpoch(2), candidate=ReplicaKey(_OTHER)
        )
        self._availability.recorded(_OTHER, raised, now_ms)
        deposed = events.LeaderDeposed(replica=ReplicaKey(_LEADER), leader_epoch=LeaderEpoch(2))
        self._availability.recorded(_LEADER, deposed, now_ms)


def _deposed_by_one_that_does_not_hear_it(world: World) -> None:
    """102 hears nobody, and 100 and 101 hear each other."""
    world.cut((_OTHER, _LEADER), (_OTHER, _FOLLOWER))
    world.look(_SETTLE_MS + 1)
    world.depose(_SETTLE_MS + 1)


def _leads_on_though_nobody_reaches_it(world: World) -> None:
    world.cut((_FOLLOWER, _LEADER), (_OTHER, _LEADER))
    world.look(1)
    world.look(1 + _RESIGN_MS + SLACK_MS + 1)


def _is_reached_only_by_one_that_it_has_removed(world: World) -> None:
    world.voters[_LEADER] = (_LEADER, _FOLLOWER)
    world.cut((_FOLLOWER, _LEADER))
    world.look(1)
    world.look(1 + _RESIGN_MS + SLACK_MS + 1)


CASES: Final[list[tuple[str, Callable[[World], None]]]] = [
    ("Q8", _deposed_by_one_that_does_not_hear_it),
    ("Q9", _leads_on_though_nobody_reaches_it),
    ("Q9", _is_reached_only_by_one_that_it_has_removed),
]
"""Promises, and the history that breaks each."""


@pytest.mark.parametrize(("check_id", "history"), CASES, ids=[check_id for check_id, _ in CASES])
def test_a_check_fires_on_the_history_that_breaks_it(check_id: str, history: Callable[[World], None]) -> None:
    world = World()

    history(world)

    assert world.fired == {check_id}


def _deposed_soon_after_a_fault(world: World) -> None:
    world.cut((_FOLLOWER, _LEADER), (_OTHER, _LEADER))
    world.look(_RESIGN_MS)
    world.cut()
    world.depose(_RESIGN_MS + _SETTLE_MS)


def _resigns_in_time(world: World) -> None:
    world.cut((_FOLLOWER, _LEADER), (_OTHER, _LEADER))
    world.look(1)
    world.nodes[_LEADER].leads = False
    world.look(1 + _RESIGN_MS + SLACK_MS + 1)


def _one_follower_reaches_it(world: World) -> None:
    world.cut((_OTHER, _LEADER))
    world.look(1)
    world.look(10 * _RESIGN_MS)


def _is_reached_again_in_time(world: World) -> None:
    world.cut((_FOLLOWER, _LEADER), (_OTHER, _LEADER))
    world.look(1)
    world.cut()
    world.look(_RESIGN_MS)
    world.cut((_FOLLOWER, _LEADER), (_OTHER, _LEADER))
    world.look(_RESIGN_MS + 1)
    world.look(_RESIGN_MS + 1 + SLACK_MS)


def _another_leader_has_appended_the_removal_of_its_voter(world: World) -> None:
    """100 is reached by 102, which 101 has removed in its log, a leader that nobody hears any more."""
    world.voters[_FOLLOWER] = (_LEADER, _FOLLOWER)
    world.nodes[_FOLLOWER].leads = True
    world.cut((_FOLLOWER, _LEADER))
    world.look(1)
    world.look(10 * _RESIGN_MS)


@pytest.mark.parametrize(
    "history",
    [
        _deposed_soon_after_a_fault,
        _resigns_in_time,
        _one_follower_reaches_it,
        _is_reached_again_in_time,
        _another_leader_has_appended_the_removal_of_its_voter,
    ],
)
def test_no_check_fires_while_the_promise_is_kept(history: Callable[[World], None]) -> None:
    world = World()

    history(world)

    assert world.fired == set()
