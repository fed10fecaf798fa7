"""From a seed to a schedule: draws a cluster, a profile and moves, and plays the moves as they are drawn.

A seed and the same options always lead to the same actions, which are kept: the result is a plan that needs no seed.
"""

from collections.abc import Mapping
from enum import Enum
from random import Random
from typing import Final

import msgspec

from laststand.emulator.core.promises import PromiseKind
from laststand.emulator.core.switches import DEFAULT_ERA
from laststand.emulator.core.types import BrokerId, NodeId, TopicPartition, Way
from laststand.emulator.plan.actions import Action, Cut, Expire, Hold, Wait
from laststand.emulator.plan.channels import Channel, Link
from laststand.emulator.plan.plan import Plan
from laststand.emulator.plan.topics import PlannedTopic
from laststand.emulator.simulator.moves.cluster_view import ClusterView
from laststand.emulator.simulator.moves.moves import MOVES
from laststand.emulator.simulator.profiles.profile import PROGRESS, Profile, swarm
from laststand.emulator.simulator.profiles.profiles import ALL_PROFILES, profiles_of
from laststand.emulator.simulator.profiles.spreads import draw_properties
from laststand.emulator.simulator.run.journal import Journal
from laststand.emulator.simulator.run.simulation import Halts, Simulation, SimulationResult

_REPLICATION_FACTOR: Final = 3
_STEPS_MIN: Final = 250
_REVIEW_MOVES: Final = 12
"""Number of moves between two checks of progress."""

_ACKS_MIN: Final = 4
"""Fewer acknowledgements since then make moves that make progress ``_SLOW_FACTOR`` times as frequent."""

_SLOW_FACTOR: Final = 3


class StopAt(Enum):
    """The condition that ends a schedule early."""

    FIRST_FINDING = "first_finding"
    """At the first finding."""

    OUTCOME = "outcome"
    """At the first loss that a user sees; weak candidates found before are elected (``elect_weak_candidates``)."""


class SweepOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options that all schedules of a sweep share.

    Attributes:
        era: the era whose rules apply.
        switches: rules that differ from the era's, by name.
        properties: of every node.
        cluster: brokers, topics and properties; drawn as the profile says, if ``None``.
        profiles: names to choose from; if empty, all profiles that apply to the era.
        stop_at: the condition that ends a schedule early.
        are_plans_kept: whether a sweep also returns the plans of schedules without findings.
    """

    era: str = DEFAULT_ERA
    switches: tuple[tuple[str, str], ...] = ()
    properties: tuple[tuple[str, str], ...] = ()
    cluster: Plan | None = None
    profiles: tuple[str, ...] = ()
    stop_at: StopAt = StopAt.FIRST_FINDING
    are_plans_kept: bool = False

    def __post_init__(self) -> None:
        """Fills in the profiles of the era."""
        if not self.profiles:
            msgspec.structs.force_setattr(self, "profiles", profiles_of(self.era))


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """The schedule of a seed, and its outcome."""

    seed: int
    profile: str
    plan: Plan
    outcome: SimulationResult


def explore(seed: int, options: SweepOptions, *, journal: Journal | None = None) -> Schedule:
    """Draws and plays one schedule."""
    topology = Random(f"{seed}/topology")
    name = options.profiles[topology.randrange(len(options.profiles))]
    profile = swarm(ALL_PROFILES[name], topology)
    cluster = _draw_cluster(profile, topology) if options.cluster is None else options.cluster
    drawn = {**draw_properties(profile.spreads, Random(f"{seed}/properties")), **dict(profile.properties)}
    plan = msgspec.structs.replace(
        cluster,
        era=options.era,
        switches=options.switches,
        properties=tuple({**drawn, **dict(cluster.properties), **dict(options.properties)}.items()),
    )
    simulation = Simulation(plan, journal=journal)
    simulation.begin()
    simulation.halt(Halts.AT_FINDINGS)
    view = ClusterView(
        simulation.cluster,
        simulation.oracle,
        plan.partitions,
        budget=profile.budget,
        fates=profile.fates,
        seed=str(seed),
    )
    played = _play_moves(simulation, view, profile.weights, profile.moves, options.stop_at)
    simulation.finish()
    return Schedule(seed=seed, profile=name, plan=plan.with_actions(merge_waits(played)), outcome=simulation.outcome())


def _draw_cluster(profile: Profile, topology: Random) -> Plan:
    brokers = topology.choice(profile.brokers)
    factor = min(_REPLICATION_FACTOR if topology.random() < 0.8 else 4, brokers)
    min_isr = min(topology.choice(profile.min_isr), factor)
    replicas = tuple(
        tuple(BrokerId(NodeId((index + place) % brokers)) for place in range(factor))
        for index in range(topology.randint(1, profile.partitions))
    )
    properties = (("min.insync.replicas", str(min_isr)),)
    topics = [PlannedTopic(name="orders", replicas=replicas, properties=properties)]
    topics += [
        PlannedTopic(name=name, replicas=replicas[:1], properties=properties) for name in profile.internal_topics
    ]
    return Plan(brokers=brokers, controllers=profile.controllers, combined=profile.combined, topics=tuple(topics))


def _play_moves(
    simulation: Simulation, view: ClusterView, weights: Mapping[str, int], moves: int, stop_at: StopAt
) -> list[Action]:
    names, frequencies = list(weights), list(weights.values())
    played: list[Action] = []
    budget = moves
    acks = simulation.oracle.tally.acks
    while budget > 0 or simulation.cluster.steps < _STEPS_MIN:
        budget -= 1
        if budget % _REVIEW_MOVES == 0:
            is_slow = simulation.oracle.tally.acks - acks < _ACKS_MIN
            acks = simulation.oracle.tally.acks
            frequencies = [
                weight * _SLOW_FACTOR if is_slow and name in PROGRESS else weight for name, weight in weights.items()
            ]
        (move,) = view.schedule.choices(names, frequencies)
        for action in MOVES[move](view):
            parts, goes_on = _play_through(simulation, action, stop_at)
            played += parts
            if not goes_on:
                return played
    return played


def _play_through(simulation: Simulation, action: Action, stop_at: StopAt) -> tuple[list[Action], bool]:
    """Plays an action, past findings that do not end the schedule; returns the actions, and whether to continue."""
    played: list[Action] = []
    left: Action | None = action
    while left is not None:
        parts = play_until_halted(simulation, left)
        played += parts
        if simulation.has_crashed:
            return played, False
        if not simulation.cluster.is_halted:
            return played, True
        findings = simulation.findings()
        if stop_at is StopAt.FIRST_FINDING or any(alarm.kind is PromiseKind.OUTCOME for alarm in findings):
            return played, False
        simulation.halt(Halts.AT_FINDINGS)
        if _electable(simulation):
            return [*played, *elect_weak_candidates(simulation)], False
        left = _rest(left, parts)
    return played, True


def _electable(simulation: Simulation) -> list[tuple[TopicPartition, BrokerId]]:
    """Returns the weak candidates that an election may choose: only replicas are elected."""
    states = simulation.cluster.image.partitions
    return [
        (name, broker)
        for name, broker in simulation.oracle.weak_candidates()
        if name in states and broker in states[name].replicas
    ]


def _rest(action: Action, parts: list[Action]) -> Action | None:
    """Returns the rest of a wait during which the cluster was halted."""
    match action, parts:
        case Wait(duration_ms=wanted), [Wait(duration_ms=passed)] if passed < wanted:
            return Wait(duration_ms=wanted - passed)
        case _:
            return None


def play_until_halted(simulation: Simulation, action: Action) -> list[Action]:
    """Plays an action; returns the played action, or the played part of a wait if the cluster was halted."""
    started_ms = simulation.cluster.now_ms
    if not simulation.play(action):
        return []
    if not simulation.cluster.is_halted:
        return [action]
    passed = Wait(duration_ms=simulation.cluster.now_ms - started_ms)
    match action:
        case Wait():
            return [passed]
        case Expire(nodes=nodes):
            controller_id = simulation.cluster.metadata_node.node_id
            heartbeats = [Channel(node, controller_id, "BrokerHeartbeat", Way.REQUEST) for node in nodes]
            return [*(Hold(channel=channel) for channel in heartbeats), passed]
        case _:
            return [action]


def elect_weak_candidates(simulation: Simulation) -> list[Action]:
    """Has weak candidates elected, by cutting links to the ISR and to the controller; returns the actions."""
    played: list[Action] = []
    simulation.halt(Halts.NEVER)
    for name, broker_id in _electable(simulation):
        state = simulation.cluster.image.partitions[name]
        others = [other for other in (*state.isr, *state.elr) if other != broker_id]
        actions: list[Action] = [
            *(Cut(link=Link(broker_id, other)) for other in others),
            *(Cut(link=Link(other, simulation.cluster.metadata_node.node_id)) for other in others),
            Wait(duration_ms=simulation.cluster.properties.broker_session_timeout_ms * 7 // 4),
        ]
        played += [action for action in actions if simulation.play(action)]
    return played


def merge_waits(actions: list[Action]) -> list[Action]:
    """Returns the actions with neighbouring waits made one."""
    merged: list[Action] = []
    for action in actions:
        if merged and isinstance(action, Wait) and isinstance(merged[-1], Wait):
            merged[-1] = Wait(duration_ms=merged[-1].duration_ms + action.duration_ms)
        else:
            merged.append(action)
    return merged
