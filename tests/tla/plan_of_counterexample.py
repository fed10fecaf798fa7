"""Turns a counter-example of TLC into a plan that ``laststand replay`` plays.

Every message that an action of the specification stands for is held, and arrives where the action is in the trace:
metadata at ``Apply``, a fetch at ``Fetch``, AlterPartition at ``Decide``, heartbeats at ``Unfence``. How long a step
takes is found by playing it in the simulator until the cluster is where the trace is; the plan has these times.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise, permutations, product
from typing import Any, Final

from laststand.emulator.core.broker.replicas.isr import Committed
from laststand.emulator.core.broker.replicas.partition import Partition
from laststand.emulator.core.types import BrokerId, NodeId, TopicPartition, Way
from laststand.emulator.plan.actions import Action
from laststand.emulator.plan.channels import Channel
from laststand.emulator.plan.lines import parse_action
from laststand.emulator.plan.names import Names
from laststand.emulator.plan.plan import Plan, parse_plan
from laststand.emulator.simulator.run.simulation import Simulation
from laststand.emulator.simulator.search.explorer import merge_waits
from tests.tla.counterexample import State

_PARTITION: Final = TopicPartition("orders", 0)
_CONTROLLER: Final = 100
_CLIENT: Final = 1000
_LAGS_MS: Final = (30_000, 1_500)
"""Times after which members lag: either none does, or those do that the trace proposes to do without."""

_STEP_MS: Final = 4_000
"""The longest that a step takes: a session, or two lag times."""

_READ_MS: Final = 2_500
"""In which a consumer looks for a nearer replica."""

_OF_THE_CONTROLLER: Final = frozenset({"Fence", "Unfence", "ElectLeader", "ChangeMinIsr"})
"""Actions that brokers do not hear of before they apply metadata."""

LOSSES: Final = frozenset({"D1", "D2", "D4", "D5", "D15", "D16"})


class TranslationError(Exception):
    """No plan that was tried loses what the trace loses; the text says how far the last one came."""


def plan_of(states: Sequence[State], *, rule: str) -> Plan:
    """Returns a plan that leads where a counter-example leads, and then loses a record.

    Args:
        states: of the trace, the initial one first.
        rule: that is off in the model, such as ``elr=off``.

    Raises:
        TranslationError: the simulator did not get there, whichever replica it preferred.
    """
    first = states[0].variables["partition"]
    others = sorted(broker for broker in states[0].variables["up"] if broker != first["leader"])
    failures = []
    for lag_ms, order in product(_LAGS_MS, permutations(others)):
        numbers = {broker: int(broker[1:]) for broker in (first["leader"], *order)}
        translation = _Translation(states, numbers, rule, lag_ms=lag_ms)
        plan = translation.played()
        lost = losses(plan)
        if lost:
            return plan
        failures.append("; ".join(translation.missed) or "every step was played, and nothing was lost")
    raise TranslationError(failures[-1])


def losses(plan: Plan) -> set[str]:
    """Returns the checks that see a loss when the simulator plays a plan, within the guarantee or not."""
    simulation = Simulation(plan)
    simulation.play_plan()
    return {alarm.check_id for alarm in simulation.outcome().alarms} & LOSSES


class _Translation:
    """One attempt: the trace with its brokers numbered, played as far as it can be.

    Attributes:
        missed: steps after which the cluster was not where the trace was.
    """

    def __init__(self, states: Sequence[State], numbers: dict[str, int], switch: str, *, lag_ms: int) -> None:
        self._states = states
        self._numbers = numbers
        self._lag_members = _members_that_lag(states)
        self._lag_ms = lag_ms
        replicas = ",".join(map(str, numbers.values()))
        properties = [
            f"replica.lag.time.max.ms={lag_ms}",
            "replica.fetch.wait.max.ms=5",
            "auto.leader.rebalance.enable=false",
        ]
        if switch.startswith("truncate_before_hw"):  # What it loses is seen by who reads from a follower.
            properties += [
                "broker.rack=rack-{node}",
                "replica.selector.class=org.apache.kafka.common.replica.RackAwareReplicaSelector",
            ]
        self._plan = parse_plan(
            f"cluster brokers={len(numbers)} era=kip-966 {switch} {' '.join(properties)}\n"
            f"topic orders replicas=({replicas}) min.insync.replicas={states[0].variables['partition']['minIsr']}\n"
        )
        self._names = Names(brokers=len(numbers), partitions=(_PARTITION,))
        self._simulation = Simulation(self._plan)
        self._cluster = self._simulation.cluster
        self._actions: list[Action] = []
        self._started: set[int] = set()
        self.missed: list[str] = []

    def played(self) -> Plan:
        """Plays the trace; returns the actions as a plan."""
        self._simulation.begin()
        self._hold_everything()
        produced: list[int] = []
        for position, (before, after) in enumerate(pairwise(self._states)):
            if after.action == "Produce":
                produced.append(position)
                continue
            if after.action not in _OF_THE_CONTROLLER:
                self._produce_all(produced)
            self._play(position, before.variables, after.variables, after.action)
        self._produce_all(produced)
        for broker in self._numbers.values():
            self._do(f"mend {_CLIENT}->{broker}")
        self._wait(_READ_MS)
        return self._plan.with_actions(merge_waits(self._actions))

    def _produce_all(self, positions: list[int]) -> None:
        """Produces as late as the trace allows, for a producer does not wait for long."""
        for position in positions:
            before, after = self._states[position : position + 2]
            self._produce(self._changed(before.variables, after.variables, "log"), position, f"{position + 2} Produce")
        positions.clear()

    def _do(self, line: str) -> bool:
        action = parse_action(line, self._names)
        is_done = self._simulation.play(action)
        if is_done:
            self._actions.append(action)
        return is_done

    def _wait(self, duration_ms: int) -> None:
        self._do(f"wait {duration_ms}")

    def _wait_until(self, condition: Callable[[], bool], step: str, *, within_ms: int = _STEP_MS) -> None:
        for _ in range(within_ms):
            if condition():
                return
            self._wait(1)
        self.missed.append(step)

    # --- Messages ---------------------------------------------------------------------------------------------------

    def _hold_everything(self) -> None:
        brokers = list(self._numbers.values())
        for broker in brokers:
            self._do(f"hold {broker}->{_CONTROLLER} AlterPartition request")
            self._do(f"hold {broker}->{_CONTROLLER} Stream response")
        lagging = {self._numbers[member] for member in self._lag_members[:1]}
        self._hold_fetches(lagging)
        if lagging:
            self._wait(self._lag_ms * 2 // 3)
        self._hold_fetches(set(brokers) - lagging)
        self._wait(20)

    def _hold_fetches(self, followers: set[int]) -> None:
        for follower in sorted(followers):
            for leader in self._numbers.values():
                if leader != follower:
                    self._do(f"hold {follower}->{leader} Fetch request")

    def _held(self, source: int, target: int, api: str, way: Way) -> int:
        channel = Channel(NodeId(source), NodeId(target), api, way)
        return len(self._cluster.network.held.get(channel, ()))

    def _fail(self, source: int, target: int, api: str, way: Way) -> None:
        """Fails the requests of a kind that are held, or whose answers are: their sender asks again."""
        held = self._held(source, target, api, way)
        if not held:
            return
        self._do(f"cut {source}->{target}")
        for _ in range(held):
            self._do(f"release-newest {source}->{target} {api} {way}")
        self._wait(30)
        self._do(f"mend {source}->{target}")

    # --- The cluster --------------------------------------------------------------------------------------------------

    def _partition(self, broker: int) -> Partition | None:
        hosting = self._cluster.nodes[BrokerId(NodeId(broker))].broker
        return None if hosting is None else hosting.partition(_PARTITION)

    def _log_length(self, broker: int) -> int:
        return len(self._cluster.stored(BrokerId(NodeId(broker)), _PARTITION))

    def _high_watermark(self, broker: int) -> int:
        partition = self._partition(broker)
        return 0 if partition is None else partition.log.high_watermark

    def _is_at(self, broker: int, state: dict[str, Any]) -> bool:
        """Returns whether a replica has the log and at least the high watermark that it has in a state."""
        log, watermark = (state[variable][self._name(broker)] for variable in ("log", "hw"))
        return self._log_length(broker) == len(log) and self._high_watermark(broker) >= watermark

    def _is_unfenced(self, broker: int) -> bool:
        registration = self._cluster.image.brokers.get(BrokerId(NodeId(broker)))
        return registration is not None and not registration.fenced

    def _has_proposed(self, broker: int) -> bool:
        partition = self._partition(broker)
        return partition is not None and not isinstance(partition.isr_state, Committed)

    # --- Steps ------------------------------------------------------------------------------------------------------

    def _play(self, position: int, before: dict[str, Any], after: dict[str, Any], action: str) -> None:
        step = f"{position + 2} {action}"
        match action:
            case "Fence":
                self._fence(self._changed(before, after, "registered"), step)
            case "Unfence":
                self._unfence(self._changed(before, after, "registered"), step)
            case "Apply":
                self._apply(self._changed(before, after, "view"), after, step)
            case "Fetch":
                self._fetch(position, before, after, step)
            case "Propose":
                self._propose(self._changed(before, after, "pending"), before, after, step)
            case "ElectLeader":
                leader = self._numbers[after["partition"]["leader"]]
                self._do(f"elect_leaders: {{type: designated, partition: orders-0, leader: {leader}}}")
                self._wait(3)
            case "ChangeMinIsr":
                self._do(f"min-isr orders value={after['partition']['minIsr']}")
                self._wait(3)
            case "UncleanShutdown":
                broker = self._changed(before, after, "up")
                self._lose_power(broker, kept=len(after["log"][self._name(broker)]))
            case "Register":
                self._register(self._changed(before, after, "epoch"), position, step)
            case "Start":
                broker = self._changed(before, after, "up")
                self._do(f"hold {broker}->{_CONTROLLER} BrokerRegistration request")
                self._do(f"start {broker}")
                self._started.add(broker)
                self._wait(5)
            case "Stop":
                self._stop(self._changed(before, after, "up"), step)
            case "TakeAnswer":
                self._wait(5)
            case _:  # TLC calls Decide by the disjunct that it is in.
                self._decide(before, after, step)

    def _changed(self, before: dict[str, Any], after: dict[str, Any], variable: str) -> int:
        [broker] = [name for name in after[variable] if after[variable][name] != before[variable][name]]
        return self._numbers[broker]

    def _name(self, broker: int) -> str:
        return next(name for name, number in self._numbers.items() if number == broker)

    def _fence(self, broker: int, step: str) -> None:
        self._do(f"hold {broker}->{_CONTROLLER} BrokerHeartbeat request")
        self._wait_until(lambda: not self._is_unfenced(broker), step)
        self._wait(2)

    def _unfence(self, broker: int, step: str) -> None:
        self._do(f"release {broker}->{_CONTROLLER} BrokerHeartbeat request")
        self._wait_until(lambda: self._is_unfenced(broker), step, within_ms=1_000)
        self._wait(2)

    def _apply(self, broker: int, after: dict[str, Any], step: str) -> None:
        known = after["view"][self._name(broker)]
        leader = None if known["leader"] is None else self._numbers[known["leader"]]
        outdated = 0 if leader in (None, broker) else self._held(broker, leader, "Fetch", Way.REQUEST)
        self._wait(2)
        if broker in self._started:  # It reads all metadata in order, from the beginning.
            self._started.remove(broker)
            self._do(f"release {broker}->{_CONTROLLER} Stream response")
            self._wait(5)
            self._do(f"hold {broker}->{_CONTROLLER} Stream response")
        else:
            self._do(f"release-newest {broker}->{_CONTROLLER} Stream response")

        def has_applied() -> bool:
            partition = self._partition(broker)
            return partition is not None and partition.leader == leader

        self._wait_until(has_applied, step, within_ms=200)
        if outdated and leader is not None:  # It asked for something when it followed this leader before.
            self._fail(broker, leader, "Fetch", Way.REQUEST)
        self._wait(2)

    def _produce(self, leader: int, position: int, step: str) -> None:
        for broker in self._numbers.values():
            self._do(f"mend {_CLIENT}->{broker}" if broker == leader else f"cut {_CLIENT}->{broker}")
        record = self._states[position + 1].variables["appended"]
        is_committed = any(entry["record"] == record for _, entry in self._states[-1].variables["committed"])
        length = self._log_length(leader)
        self._do(f"produce orders-0 acks={'all' if is_committed else '1'} records=1")
        self._wait_until(lambda: self._log_length(leader) > length, step, within_ms=1_000)
        watermark = self._states[position + 1].variables["hw"][self._name(leader)]
        # It waits for replicas outside of the ISR that could join, until these lag: the specification has no such rule.
        self._wait_until(lambda: self._high_watermark(leader) >= watermark, step, within_ms=2 * self._lag_ms)

    def _fetch(self, position: int, before: dict[str, Any], after: dict[str, Any], step: str) -> None:
        follower, leader = self._fetching(before, after)
        following = self._states[position + 2 : position + 3]
        pair = (follower, leader)
        if any(each.action == "Fetch" and self._fetching(after, each.variables) == pair for each in following):
            return  # The next one plays both: between them nothing happens.
        self._wait_until(lambda: self._held(follower, leader, "Fetch", Way.REQUEST) > 0, step, within_ms=500)
        is_repeated = self._states[position].action == "Fetch" and self._fetching(
            self._states[position - 1].variables, before
        ) == (follower, leader)
        verb = "release" if is_repeated else "release-newest"
        self._do(f"{verb} {follower}->{leader} Fetch request")
        self._wait_until(lambda: all(self._is_at(broker, after) for broker in (follower, leader)), step, within_ms=40)
        if is_repeated:
            self._do(f"hold {follower}->{leader} Fetch request")
        self._wait(3)

    def _fetching(self, before: dict[str, Any], after: dict[str, Any]) -> tuple[int, int]:
        for leader, progress in after["progress"].items():
            for follower, reported in progress.items():
                if reported != before["progress"][leader][follower]:
                    return self._numbers[follower], self._numbers[leader]
        changed = [
            broker
            for broker in after["log"]
            if any(after[variable][broker] != before[variable][broker] for variable in ("log", "hw"))
        ]
        [follower] = [broker for broker in changed if after["view"][broker]["leader"] != broker]
        return self._numbers[follower], self._numbers[after["view"][follower]["leader"]]

    def _propose(self, leader: int, before: dict[str, Any], after: dict[str, Any], step: str) -> None:
        name = self._name(leader)
        joining = set(after["pending"][name]) - set(before["view"][name]["isr"])
        if not joining or self._has_proposed(leader):
            self._wait_until(lambda: self._has_proposed(leader), step)
            return
        # It proposes a member when that fetches; what the fetch brings is lost, for here nothing was fetched.
        [member] = (self._numbers[broker] for broker in joining)
        if not after["up"][self._name(member)]:
            self.missed.append(f"{step}: a member that is down sends no fetch")
        if after["view"][name]["partitionEpoch"] == after["partition"]["partitionEpoch"]:
            self._do(f"release-newest {leader}->{_CONTROLLER} Stream response")  # It hears who is unfenced.
            self._wait(2)
        self._do(f"hold {member}->{leader} Fetch response")
        self._do(f"release-newest {member}->{leader} Fetch request")
        self._wait_until(lambda: self._has_proposed(leader), step, within_ms=20)
        self._wait(10)
        self._fail(member, leader, "Fetch", Way.RESPONSE)
        self._do(f"release {member}->{leader} Fetch response")

    def _decide(self, before: dict[str, Any], after: dict[str, Any], step: str) -> None:
        request = next((each for each in before["requests"] if each not in after["requests"]), None)
        is_again = request is None
        if request is None:  # It was refused, and a copy of it is on its way still.
            [request] = before["requests"]
        leader = self._numbers[request["leader"]]
        self._wait_until(
            lambda: self._held(leader, _CONTROLLER, "AlterPartition", Way.REQUEST) > 0, step, within_ms=100
        )
        verb, count = ("duplicate", "") if is_again else ("release", " count=1")
        self._do(f"{verb} {leader}->{_CONTROLLER} AlterPartition request{count}")
        self._wait(4)

    def _lose_power(self, broker: int, *, kept: int) -> None:
        keep = "prefix" if kept else "none"
        self._do(f"power-loss {broker} keep={keep} kept={kept} truncation=kept")
        self._wait(2)

    def _register(self, broker: int, position: int, step: str) -> None:
        # Its heartbeats wait for Unfence; a process that ends before it applies anything, does not hear of anything.
        later = [
            after.action
            for before, after in pairwise(self._states[position + 1 :])
            if self._acts(broker, before, after)
        ]
        if later[:1] != ["Stop"]:
            self._do(f"release {broker}->{_CONTROLLER} Stream response")
        self._do(f"hold {broker}->{_CONTROLLER} BrokerHeartbeat request")
        self._do(f"release {broker}->{_CONTROLLER} BrokerRegistration request")
        registration = self._cluster.image.brokers[BrokerId(NodeId(broker))]
        self._do(f"start {broker}")
        self._wait_until(
            lambda: self._cluster.image.brokers[BrokerId(NodeId(broker))].broker_epoch != registration.broker_epoch,
            step,
        )
        self._wait(10)
        self._do(f"hold {broker}->{_CONTROLLER} Stream response")

    def _acts(self, broker: int, before: State, after: State) -> bool:
        name = self._name(broker)
        return any(before.variables[variable][name] != after.variables[variable][name] for variable in ("view", "up"))

    def _stop(self, broker: int, step: str) -> None:
        self._fail(broker, _CONTROLLER, "BrokerHeartbeat", Way.REQUEST)  # By one of them it would be unfenced.
        self._do(f"stop {broker}")
        self._do(f"release {broker}->{_CONTROLLER} BrokerHeartbeat request")
        self._wait_until(lambda: self._cluster.nodes[BrokerId(NodeId(broker))].core is None, step)


def _members_that_lag(states: Sequence[State]) -> list[str]:
    """Returns the members that leaders propose to do without, in order."""
    lagging = []
    for before, after in pairwise(states):
        if after.action == "Propose":
            for leader, proposed in after.variables["pending"].items():
                if proposed is not None and before.variables["pending"][leader] is None:
                    lagging += sorted(set(before.variables["view"][leader]["isr"]) - set(proposed))
    return lagging
