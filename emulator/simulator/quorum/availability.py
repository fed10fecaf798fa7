"""Promises of availability: a leader in touch with a majority keeps leading, and any other leader resigns.

Judged by the faults between the controllers and their times, without any code of the core.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import combinations
from typing import Protocol

from laststand.emulator.core.quorum import events
from laststand.emulator.core.types import LeaderEpoch, NodeId
from laststand.emulator.plan.channels import Link
from laststand.emulator.simulator.network.network import Network

SLACK_MS = 100
"""For what is under way, and for timers that are looked at with the next message."""


class Watched(Protocol):
    """A controller, as far as its leadership goes."""

    incarnation: int

    @property
    def leads(self) -> bool:
        """True if the controller believes that it leads."""
        ...

    @property
    def leader_epoch(self) -> LeaderEpoch:
        """The epoch of the process that runs."""
        ...


class Faults(Protocol):
    """The faults that are in force."""

    def is_sound(self, node_id: NodeId) -> bool:
        """Returns whether a process runs as it should."""
        ...

    def is_running(self, node_id: NodeId) -> bool:
        """Returns whether there is a process, paused or not."""
        ...


class QuorumAvailability:
    """Follows faults and leaders of one quorum.

    Args:
        nodes: all controllers.
        faults: in force now.
        network: the network and its faults.
        settle_ms: time in which undisturbed controllers follow one leader, and earlier faults have no more effect.
        resign_ms: time after which a leader without a majority has to resign.
        voters: returns the voters in a controller's own log, committed or not: a leader uses these.
        report: takes the id of a promise that was found broken, and a sentence.
    """

    def __init__(
        self,
        nodes: Mapping[NodeId, Watched],
        faults: Faults,
        network: Network,
        *,
        settle_ms: int,
        resign_ms: int,
        voters: Callable[[NodeId], tuple[NodeId, ...]],
        report: Callable[[str, str], None],
    ) -> None:
        self._nodes = nodes
        self._faults = faults
        self._network = network
        self._settle_ms = settle_ms
        self._resign_ms = resign_ms
        self._voters = voters
        self._report = report
        self._links = {node_id: [Link(node_id, other) for other in nodes] for node_id in nodes}
        self._looked_at_ms = -1
        self._disturbed_ms: dict[NodeId | Link[NodeId], int] = {}
        self._alone_since_ms: dict[NodeId, int] = {}
        self._processes: dict[NodeId, int] = {}
        self._elected: dict[NodeId, tuple[LeaderEpoch, int]] = {}
        self._raised_ms: dict[LeaderEpoch, int] = {}
        self._voters_of: dict[NodeId, tuple[NodeId, ...]] = {}

    def look(self, now_ms: int) -> None:
        """Records the faults in force, and judges leaders; called with every step and event of a controller."""
        if now_ms == self._looked_at_ms:
            return
        self._looked_at_ms = now_ms
        network = self._network
        touched = {(each.source, each.target) for each in (*network.held, *network.interferences)}
        for node_id, links in self._links.items():
            process = self._nodes[node_id].incarnation
            is_new = self._processes.get(node_id) != process
            if is_new or not self._faults.is_sound(node_id) or (node_id, node_id) in touched:
                self._processes[node_id] = process
                self._disturbed_ms[node_id] = now_ms
            for link in links:
                if network.is_blocked(link) or link in network.latencies or link in touched:
                    self._disturbed_ms[link] = now_ms
        for node_id, node in self._nodes.items():
            if node.leads and self._voters_of.get(node_id) != (voters := self._voters(node_id)):
                self._voters_of[node_id] = voters
                self._disturbed_ms.update(dict.fromkeys(self._nodes, now_ms))
            if not node.leads or not self._faults.is_sound(node_id) or self._may_be_heard(node_id, touched):
                self._alone_since_ms.pop(node_id, None)
            elif now_ms - self._alone_since_ms.setdefault(node_id, now_ms) > self._resign_ms + SLACK_MS:
                text = f"{node_id} leads on in {node.leader_epoch}, though no majority could reach it since "
                self._report("Q9", f"{text}{self._alone_since_ms[node_id]} ms")

    def _may_be_heard(self, leader: NodeId, touched: set[tuple[NodeId, NodeId]]) -> bool:
        """Returns whether fetches of a majority may reach a leader; held messages count, as they may be released."""
        voters = self._voters_of[leader]
        near = [
            voter
            for voter in voters
            if voter == leader
            or (voter, leader) in touched
            or (self._faults.is_running(voter) and not self._network.swallows_requests(Link(voter, leader)))
        ]
        return 2 * len(near) > len(voters)

    def recorded(self, node_id: NodeId, event: events.QuorumEvent, now_ms: int) -> None:
        """Judges an event."""
        self.look(now_ms)
        self._raised_ms.setdefault(event.leader_epoch, now_ms)
        if isinstance(event, events.LeaderElected):
            self._elected[node_id] = event.leader_epoch, now_ms
        elif (
            isinstance(event, events.LeaderDeposed)
            and node_id in self._elected
            and node_id in self._voters_of.get(node_id, ())
        ):
            self._judge_deposition(node_id, event.leader_epoch)

    def _judge_deposition(self, node_id: NodeId, by_epoch: LeaderEpoch) -> None:
        leader_epoch, elected_ms = self._elected[node_id]
        raised_ms = self._raised_ms[by_epoch]
        voters = self._voters_of[node_id]
        count = len(voters) // 2
        others = [voter for voter in voters if voter != node_id]
        for followers in combinations(others, count):
            disturbed_ms = max((self._disturbed_ms.get(each, 0) for each in _parts((node_id, *followers))), default=0)
            since_ms = max(disturbed_ms, elected_ms)
            if raised_ms - since_ms > self._settle_ms:
                names = " and ".join(map(str, followers))
                text = (
                    f"{node_id} led {leader_epoch}, undisturbed with {names} since {since_ms} ms, and was deposed by "
                )
                self._report("Q8", f"{text}epoch {by_epoch}, which was raised at {raised_ms} ms")
                return


def _parts(nodes: tuple[NodeId, ...]) -> Iterator[NodeId | Link[NodeId]]:
    yield from nodes
    for one in nodes:
        for other in nodes:
            if one != other:
                yield Link(one, other)
