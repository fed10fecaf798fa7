"""Profile ``quorum``: a seed becomes a schedule of faults, which is played, healed and judged.

First, safety is checked under any number of faults; then all faults are mended, and a leader has to commit.
"""

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from random import Random
from typing import Final

import msgspec

from laststand.emulator.core.node_clock import NORMAL_RATE_PPM
from laststand.emulator.core.quorum.voter_set import ReplicaKey
from laststand.emulator.core.quorum_rules import QuorumRules
from laststand.emulator.core.types import NodeId, Way
from laststand.emulator.plan.channels import Channel
from laststand.emulator.simulator.quorum.controllers import sync_channel
from laststand.emulator.simulator.quorum.oracle import QuorumCheck, QuorumFinding, QuorumOracle, voters_in
from tests.simulation.quorum.cluster import QuorumCluster

APIS: Final = ("Vote", "BeginQuorumEpoch", "EndQuorumEpoch", "FetchMetadata")
"""Messages that a schedule holds."""

_MOVES_MAX: Final = 60
_PROGRESS_WITHIN_MS: Final = 60_000
_SETTLE_MS: Final = 1000
_CLOCK_RATES: Final = (NORMAL_RATE_PPM // 2, NORMAL_RATE_PPM * 9 // 10, NORMAL_RATE_PPM * 11 // 10)


class QuorumOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a schedule.

    Attributes:
        seed: of the schedule.
        steps: the performed steps, in order.
        findings: by check, the first of each.
        commits: the highest offset that was committed.
        elections: leaders that were elected.
    """

    seed: int
    steps: tuple[str, ...]
    findings: tuple[QuorumFinding, ...]
    commits: int
    elections: int


class QuorumSchedule:
    """One schedule.

    Args:
        seed: the schedule follows from it, and from the rules.
        rules: of all nodes.
        asked: the checks to make; all of them if none is named.
    """

    def __init__(self, seed: int, rules: QuorumRules, *, asked: AbstractSet[QuorumCheck] = frozenset()) -> None:
        self.seed = seed
        self.steps: list[str] = []
        self.oracle = QuorumOracle()
        self.oracle.asked = asked or self.oracle.asked
        self._chance = Random(seed)
        self._rules = rules
        voters = self._chance.choice((3, 3, 3, 4, 5, 1))
        self.cluster = QuorumCluster(voters=voters, spares=1, rules=rules, seed=seed, observer=self.oracle)
        self.oracle.members = self.cluster.members
        self.oracle.formatted = self.cluster.formatted
        self._replaced: set[NodeId] = set()
        self._moves: dict[str, tuple[int, Callable[[], str | None]]] = {
            "pass": (14, self._pass),
            "propose": (14, self._propose),
            "kill": (3, self._kill),
            "crash-within": (4, self._crash_within),
            "power-loss": (4, self._lose_power),
            "power-loss-of-all": (2, self._lose_power_of_all),
            "start": (8, self._start),
            "cut": (4, self._cut),
            "isolate": (4, self._isolate),
            "heal": (6, self._heal),
            "hold": (4, self._hold),
            "hold-sync": (3, self._hold_sync),
            "release": (6, self._release),
            "clock": (1, self._change_clock),
            "snapshot": (2, self._take_snapshot),
            "replace-disk": (1, self._replace_disk),
            "lose-state": (1, self._lose_state),
            "add-voter": (3, self._add_voter),
            "remove-voter": (2, self._remove_voter),
            "race-of-changes": (1, self._race_changes),
        }
        # Swarm testing: half of the faults are left out, so that rare conjunctions get room.
        self._chosen = {
            name: weight
            for name, (weight, _) in self._moves.items()
            if name in ("pass", "propose", "start", "heal", "release") or self._chance.random() < 0.5
        }

    def play(self) -> QuorumOutcome:
        """Plays the schedule to its end, or to the first finding."""
        names, weights = list(self._chosen), list(self._chosen.values())
        for _ in range(self._chance.randint(10, _MOVES_MAX)):
            name = self._chance.choices(names, weights)[0]
            _, move = self._moves[name]
            self.oracle.now_ms = self.cluster.queue.now_ms
            done = move()
            if done is not None:
                self.steps.append(f"{self.cluster.queue.now_ms} {name} {done}".rstrip())
            if self.oracle.findings:
                return self._outcome()
        self.oracle.compare_logs()
        if not self.oracle.findings:
            self._require_progress()
        return self._outcome()

    def _outcome(self) -> QuorumOutcome:
        return QuorumOutcome(
            seed=self.seed,
            steps=tuple(self.steps),
            findings=tuple(self.oracle.findings),
            commits=self.oracle.committed_end_offset,
            elections=self.oracle.elections,
        )

    def _require_progress(self) -> None:
        cluster = self.cluster
        cluster.heal()
        for node_id, member in cluster.members.items():
            member.crash_after = None
            member.clock.set_rate(NORMAL_RATE_PPM, now_ms=cluster.queue.now_ms)
            cluster.start(node_id)
        cluster.run(_SETTLE_MS)  # requests to change the voters are still under way
        if not self._can_progress():
            return
        before = self.oracle.committed_end_offset

        def has_committed() -> bool:
            self.oracle.now_ms = cluster.queue.now_ms
            for leader in cluster.leaders:
                cluster.propose(leader)
            cluster.run(500)
            return self.oracle.committed_end_offset > before or bool(self.oracle.findings)

        if not cluster.run_until(has_committed, within_ms=_PROGRESS_WITHIN_MS):
            self.oracle.find(QuorumCheck.PROGRESS, f"nothing committed beyond {before}")
        self.oracle.compare_logs()

    def _can_progress(self) -> bool:
        """Returns whether a majority of the newest voter set in each log runs, with its former disks."""
        members = self.cluster.members
        for member in members.values():
            voters = voters_in(member.disk) or self.cluster.formatted
            present = [key for key in voters if self._is_present(key)]
            if 2 * len(present) <= len(voters):
                return False
        return True

    def _is_present(self, key: ReplicaKey) -> bool:
        member = self.cluster.members[key.node_id]
        if key.directory_id is None and key.node_id in self._replaced:
            return False
        if member.core is None or key.directory_id not in (None, member.disk.directory_id):
            return False
        # A node that is no voter by its own log never stands, as in Kafka, and grants no vote to a shorter log: for
        # example a leader of two voters that appended its own removal, and stopped before the other had this record.
        return any(own.node_id == key.node_id for own in voters_in(member.disk) or self.cluster.formatted)

    # --- Moves: each returns what it did, or nothing if it was impossible -------------------------------------------

    def _node(self) -> NodeId:
        return self._chance.choice(list(self.cluster.members))

    def _pass(self) -> str:
        duration_ms = self._chance.choice((1, 2, 5, 20, 100, 500, 1500, 3000, 6000))
        self.cluster.run(duration_ms)
        return f"ms={duration_ms}"

    def _propose(self) -> str | None:
        leaders = self.cluster.leaders
        if not leaders:
            return None
        leader = self._chance.choice(leaders)
        self.cluster.propose(leader)
        return f"{leader.node_id}"

    def _kill(self) -> str:
        node_id = self._node()
        self.cluster.kill(node_id)
        return f"{node_id}"

    def _crash_within(self) -> str:
        node_id, effects = self._node(), self._chance.randint(1, 4)
        self.cluster.members[node_id].crash_after = effects
        return f"{node_id} effects={effects}"

    def _lose_power(self) -> str:
        node_id, kept = self._node(), self._chance.choice((0, 0, 1))
        self.cluster.lose_power(node_id, kept=kept)
        return f"{node_id} kept={kept}"

    def _lose_power_of_all(self) -> str:
        for node_id in self.cluster.members:
            self.cluster.lose_power(node_id)
        for node_id in self.cluster.members:
            self.cluster.start(node_id)
        return ""

    def _start(self) -> str | None:
        stopped = [node_id for node_id, member in self.cluster.members.items() if member.core is None]
        if not stopped:
            return None
        node_id = self._chance.choice(stopped)
        self.cluster.start(node_id)
        return f"{node_id}"

    def _cut(self) -> str:
        source, target = self._chance.sample(list(self.cluster.members), 2)
        self.cluster.cut(source, target)
        return f"{source}->{target}"

    def _isolate(self) -> str:
        node_id = self._node()
        for other in self.cluster.members:
            if other != node_id:
                self.cluster.cut(node_id, other)
                self.cluster.cut(other, node_id)
        return f"{node_id}"

    def _heal(self) -> str:
        self.cluster.heal()
        return ""

    def _hold(self) -> str:
        source, target = self._chance.sample(list(self.cluster.members), 2)
        way = self._chance.choice((Way.REQUEST, Way.RESPONSE))
        channel = Channel(source, target, self._chance.choice(APIS), way)
        self.cluster.hold(channel)
        return str(channel)

    def _hold_sync(self) -> str:
        channel = sync_channel(self._node())
        self.cluster.hold(channel)
        return str(channel)

    def _release(self) -> str | None:
        held = list(self.cluster.network.held)
        if not held:
            return None
        channel = self._chance.choice(held)
        self.cluster.release(channel)
        return str(channel)

    def _change_clock(self) -> str:
        node_id, rate_ppm = self._node(), self._chance.choice(_CLOCK_RATES)
        self.cluster.members[node_id].clock.set_rate(rate_ppm, now_ms=self.cluster.queue.now_ms)
        return f"{node_id} rate={rate_ppm}"

    def _take_snapshot(self) -> str | None:
        running = [member for member in self.cluster.members.values() if member.core is not None]
        if not running:
            return None
        member = self._chance.choice(running)
        self.cluster.take_snapshot(member)
        return f"{member.node_id}"

    def _replace_disk(self) -> str | None:
        """Replaces one disk per schedule: with static voters, a second one is known to lose committed records."""
        if self._replaced:
            return None
        node_id = self._node()
        self._replaced.add(node_id)
        self.cluster.replace_disk(node_id)
        return f"{node_id}"

    def _lose_state(self) -> str | None:
        """Loses ``quorum-state``, unless the log is empty: that node would look as if it had never been started."""
        node_id = self._node()
        if not self.cluster.members[node_id].disk.batches:
            return None
        self.oracle.lost_state.add(node_id)
        self.cluster.lose_election(node_id)
        return f"{node_id}"

    def _add_voter(self) -> str:
        key = self.cluster.key_of(self._node())
        self.cluster.add_voter(key)
        return str(key)

    def _remove_voter(self) -> str | None:
        leaders = self.cluster.leaders
        voters = voters_in(leaders[-1].disk) if leaders else None
        if not voters:
            return None
        key = self._chance.choice(voters)
        self.cluster.remove_voter(key)
        return str(key)

    def _race_changes(self) -> str | None:
        """Makes two voter changes with disjoint majorities, if the second does not wait for the first's commit (Q28).

        The leader of four voters adds a fifth, the only one to learn of that. Another leader, elected by the other
        three, removes the first leader; one of the three does not learn of that, and can still vote for it.
        """
        cluster = self.cluster
        leaders = cluster.leaders
        voters = voters_in(leaders[-1].disk) if leaders else None
        if voters is None or len(voters) != len(cluster.members) - 1:
            return None
        first = leaders[-1].node_id
        (spare,) = set(cluster.members) - {key.node_id for key in voters}
        others = [node_id for node_id in cluster.members if node_id not in (first, spare)]
        self._part([first, spare], others)
        cluster.add_voter(cluster.key_of(spare))
        cluster.run(20)
        cluster.run_until(lambda: any(cluster.members[node_id].leads for node_id in others), within_ms=10_000)
        second = next((node_id for node_id in others if cluster.members[node_id].leads), None)
        if second is None:
            return None
        deaf = self._chance.choice([node_id for node_id in others if node_id != second])
        self._part([deaf], [node_id for node_id in others if node_id != deaf])
        cluster.remove_voter(cluster.key_of(first))
        cluster.run(3000)
        cluster.heal()
        self._part([first, spare, deaf], [node_id for node_id in others if node_id != deaf])
        cluster.run(10_000)
        return f"{first} adds {spare}, {second} removes {first}, {deaf} is deaf"

    def _part(self, these: list[NodeId], those: list[NodeId]) -> None:
        for one in these:
            for other in those:
                self.cluster.cut(one, other)
                self.cluster.cut(other, one)
