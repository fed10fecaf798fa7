"""Converts a plan to a scenario: plays it in the simulator, and makes barriers from the observed states.

Every action is a step. Where the plan lets time pass, the scenario waits for the states that changed: leaders, ISRs and
ELRs, fenced brokers, numbers of acknowledged records, ends of logs. Times are ``SCALE`` times those of the simulator,
as processes on one machine need longer than a millisecond for a message. The producers have the same names as in the
simulator, so that a record has one name on both.
"""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

import msgspec
import yaml

from laststand.chaos.plans.settle_times import PlanResult, SettledPlan, result_of, settle
from laststand.chaos.scenario import conditions
from laststand.chaos.scenario.conditions_yaml import until_entry
from laststand.chaos.scenario.scenario import MissedStep
from laststand.emulator.client.counters import Counters
from laststand.emulator.core.client.steps import SendRecorded
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.image import PartitionState
from laststand.emulator.core.types import Acks, NodeId, TopicPartition
from laststand.emulator.plan import actions
from laststand.emulator.plan.channels import Channel
from laststand.emulator.plan.drivers import DriverName
from laststand.emulator.plan.fields import PLANNED_PRODUCERS
from laststand.emulator.plan.lines import format_action
from laststand.emulator.plan.plan import PROPERTIES, Plan
from laststand.emulator.plan.plan_lint import refusal
from laststand.emulator.plan.steps import action_text, flow_text
from laststand.emulator.simulator.cluster.cluster import SimulatedCluster
from laststand.emulator.simulator.run.journal import Journal
from laststand.emulator.simulator.run.simulation import CONSUMER, PRODUCER, Simulation
from laststand.emulator.simulator.run.writer import PRODUCERS

SCALE: Final = 5
"""The factor by which everything takes longer on processes."""

SLOW_MS: Final = 10_000
"""A time from which on nothing is scaled where a scenario keeps the plan's waits: it is slow enough for processes."""

_PATIENCE_MS: Final = 120_000
"""The delivery timeout of a producer, where a scenario keeps the plan's waits."""

_FETCH_WAIT: Final = "replica.fetch.wait.max.ms"
_STEPS_MS: Final = 1_000
"""The time of a few steps on processes: a fetch that the plan overtakes is answered later than that."""

_DUE_MS: Final = 100
"""A wait this long is for a timer: a session that ends, a member that lags."""

_OF_TIMERS: Final = ("Fetch", "BrokerHeartbeat")
"""Requests that are sent again while they are held: how many of them is a matter of time."""

_PRODUCERS: Final[Mapping[str, str | int]] = {PLANNED_PRODUCERS["all"]: "all", PLANNED_PRODUCERS["1"]: 1}
"""Producers of a plan, and their acks as a scenario writes them."""

_BACKGROUND: Final = "background"
_BACKGROUND_RATE: Final = 20
"""Records a second of the producer that sends beside the plan's own: some in each of the plan's states."""

_NOT_TRANSLATED: Final[Mapping[type, str]] = MappingProxyType(
    {
        actions.RecreateTopic: "the barriers that are made from a plan do not tell two topics of one name apart",
        actions.Reset: "a connection that is reset is made again before a barrier can see it",
        actions.Flap: "a link that is cut for a moment is whole again before a barrier can see it",
        actions.Slow: "a delay of some milliseconds is less than the delays that a machine makes by itself",
    }
)
"""Actions that processes have and that a plan cannot ask of them: its barriers would not keep the order."""

_REFUSALS: Final = (
    ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
    ErrorCode.INVALID_REPLICA_ASSIGNMENT,
    ErrorCode.ELECTION_NOT_NEEDED,
    ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
    ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
    ErrorCode.UNSUPPORTED_VERSION,
    ErrorCode.INVALID_UPDATE_VERSION,
    ErrorCode.INVALID_CONFIG,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.BROKER_ID_NOT_REGISTERED,
    ErrorCode.OFFSET_OUT_OF_RANGE,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.NETWORK_EXCEPTION,
)
"""Errors by which the controller or a leader refuses drawn requests, in the simulator as on processes."""


class Missing(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a plan that cannot be played on processes, and the reason."""

    what: str
    why: str


def missing_actions(plan: Plan) -> tuple[Missing, ...]:
    """Returns the actions of a plan that cannot be played on processes, in order, each text once."""
    missing: dict[str, Missing] = {}
    if plan.controllers != 1:
        what = f"{plan.controllers} controllers"
        missing[what] = Missing(what=what, why="processes have one")
    for action in plan.actions:
        why = _untranslatable(action)
        if why is not None:
            what = format_action(action)
            missing.setdefault(what, Missing(what=what, why=why))
    return tuple(missing.values())


def _untranslatable(action: actions.Action) -> str | None:
    if isinstance(action, actions.Wait):
        return None  # what happens meanwhile is waited for by the barriers that follow
    return _NOT_TRANSLATED.get(type(action)) or refusal(action, DriverName.PROCESS)


def settled_or_missing(plan: Plan) -> SettledPlan | tuple[Missing, ...]:
    """Returns the plan as it can be played with barriers, or the reasons why it cannot."""
    missing = missing_actions(plan)
    if missing:
        return missing
    settled = settle(plan)
    if settled.timed:
        return tuple(
            Missing(what=f"the time that passes {place}", why="the result depends on it, and a barrier waits longer")
            for place in settled.timed
        )
    return settled


def as_it_is_or_missing(plan: Plan) -> SettledPlan | tuple[Missing, ...]:
    """Returns the plan unchanged, for ``scenario_of(..., keeps_waits=True)``, or the actions that are impossible."""
    return missing_actions(plan) or SettledPlan(plan=plan, result=result_of(plan), timed=())


def scenario_of(
    settled: SettledPlan,
    *,
    name: str,
    expectation: Mapping[str, str | int] | None = None,
    is_exact: bool = True,
    keeps_waits: bool = False,
) -> str:
    """Returns a settled plan as the text of a scenario file.

    Args:
        settled: the plan.
        name: of the scenario.
        expectation: of its run under the plan's era; the plan's result in the simulator, if not given.
        is_exact: whether barriers also wait for leaders, ELRs, acknowledgements and the ends of logs, so that the same
            records are lost. Otherwise they wait only for ISRs, and for brokers to be fenced and unfenced; a barrier
            that is not reached ends the steps without being a problem; and an additional producer sends all the time,
            to each partition at least once before the first action.
        keeps_waits: whether the scenario also has the plan's own waits, ``SCALE`` times as long, before each barrier;
            for plans whose result depends on them.
    """
    plan = settled.plan
    document = {
        "name": name,
        "source": "a plan of the simulator",
        "cluster": {"brokers": plan.brokers, "properties": _properties(plan, keeps_waits=keeps_waits)},
        "topics": [
            {"name": topic.name, "replicas": [list(each) for each in topic.replicas], **dict(topic.properties)}
            for topic in plan.topics
        ],
        "workload": {
            "producers": list(_producers(is_exact=is_exact, keeps_waits=keeps_waits)),
            "consumers": [_consumer()],
        },
        "missed_step": (MissedStep.PROBLEM if is_exact else MissedStep.END).value,
        "expect": {plan.era: dict(_expectation(settled.result) if expectation is None else expectation)},
    }
    head = yaml.safe_dump(document, sort_keys=False, default_flow_style=None, width=120)
    return (
        head
        + "steps:\n"
        + "".join(f"  - {step}\n" for step in _steps(plan, is_exact=is_exact, keeps_waits=keeps_waits))
    )


def _expectation(result: PlanResult) -> dict[str, str | int]:
    lost = len(result.lost)
    if result.checks:
        return {"verdict": "violation", "guarantee": "broken", "lost": lost}
    if lost:
        return {"verdict": "violation", "guarantee": "exceeded", "lost": lost}
    return {"verdict": "valid", "lost": 0}


def _properties(plan: Plan, *, keeps_waits: bool) -> dict[str, str]:
    def scaled(duration_ms: int) -> int:
        return _scaled(duration_ms) if keeps_waits else duration_ms * SCALE

    given = {**PROPERTIES, **dict(plan.properties)}
    if keeps_waits:
        given[_FETCH_WAIT] = str(_STEPS_MS // SCALE)
    return {key: str(scaled(int(value))) if key.endswith(".ms") else value for key, value in given.items()}


def _scaled(duration_ms: int) -> int:
    return duration_ms if duration_ms >= SLOW_MS else duration_ms * SCALE


def _producers(*, is_exact: bool, keeps_waits: bool) -> Iterator[dict[str, str | int]]:
    delivery_ms = _PATIENCE_MS if keeps_waits else PRODUCER.delivery_timeout_ms * SCALE
    yield from (_producer(name, acks=acks, rate=0, delivery_ms=delivery_ms) for name, acks in _PRODUCERS.items())
    if not is_exact:
        yield _producer(_BACKGROUND, acks="all", rate=_BACKGROUND_RATE, delivery_ms=delivery_ms)


def _producer(name: str, *, acks: str | int, rate: int, delivery_ms: int) -> dict[str, str | int]:
    return {
        "name": name,
        "acks": acks,
        "rate": rate,
        "request.timeout.ms": PRODUCER.request_timeout_ms * SCALE,
        "delivery.timeout.ms": delivery_ms,
        "retry.backoff.ms": PRODUCER.retry_backoff_ms * SCALE,
        "metadata.max.age.ms": PRODUCER.metadata_max_age_ms * SCALE,
    }


def _consumer() -> dict[str, int]:
    return {
        "request.timeout.ms": CONSUMER.request_timeout_ms * SCALE,
        "retry.backoff.ms": CONSUMER.retry_backoff_ms * SCALE,
        "metadata.max.age.ms": CONSUMER.metadata_max_age_ms * SCALE,
        "fetch.max.wait.ms": CONSUMER.fetch_max_wait_ms * SCALE,
    }


def _steps(plan: Plan, *, is_exact: bool, keeps_waits: bool) -> Iterator[str]:
    journal = Journal()
    simulation = Simulation(plan, journal=journal)
    simulation.begin()
    cluster = simulation.cluster
    seen: dict[str, conditions.Condition] = {}
    touched: Mapping[Channel[NodeId], int] | None = {} if keeps_waits else None

    def barriers() -> Iterator[conditions.Condition]:
        yield from _new_barriers(_states(cluster, is_exact=is_exact, touched=touched), seen)
        if is_exact:
            yield from _new_barriers(_records(cluster, journal), seen)

    yield from map(_barrier, barriers())
    if not is_exact:
        partitions = tuple(sorted(cluster.controller.image.partitions))
        written = conditions.Acked(
            count=1, acks=Acks.ALL, partitions=partitions, per=conditions.CountPer.PARTITION, since=conditions.Since.RUN
        )
        yield flow_text(until_entry(conditions.Until(condition=written)))
    for position, action in enumerate(plan.actions, 1):
        broken = set(cluster.network.broken)
        simulation.play(action)
        if keeps_waits and not isinstance(action, actions.Wait):
            touched = dict(cluster.network.intercepted)
        if isinstance(action, actions.Wait):
            awaited = tuple(barriers())
            if keeps_waits and position < len(plan.actions) and not _shows(action, awaited):
                yield _wait(_scaled(action.duration_ms))
            yield from map(_barrier, awaited)
        elif not isinstance(action, actions.Cut | actions.Isolate) or cluster.network.broken != broken:
            yield action_text(action if is_exact else _tolerant(action))


def _barrier(condition: conditions.Condition) -> str:
    return flow_text(until_entry(conditions.Until(condition=condition)))


def _shows(wait: actions.Wait, awaited: Iterable[conditions.Condition]) -> bool:
    """Returns whether a plan waits for a timer whose effect a barrier waits for anyway."""
    return wait.duration_ms >= _DUE_MS and any(
        isinstance(each, conditions.BrokerIs | conditions.PartitionIs)
        or (isinstance(each, conditions.Intercepted) and each.channel.api not in _OF_TIMERS)
        for each in awaited
    )


def _wait(duration_ms: int) -> str:
    elapsed = conditions.Elapsed(duration_ms=duration_ms)
    return flow_text(
        until_entry(conditions.Until(condition=elapsed, within_ms=duration_ms + conditions.DEFAULT_WITHIN_MS))
    )


def _tolerant(action: actions.Action) -> actions.Action:
    """Returns the action with more answers allowed: on processes a request may come too early or too late."""
    if not isinstance(action, actions.AdminAction):
        return action
    return msgspec.structs.replace(action, answers=tuple(dict.fromkeys((*action.answers, *_REFUSALS))))


def _new_barriers(
    awaited: Iterator[tuple[str, conditions.Condition]], seen: dict[str, conditions.Condition]
) -> Iterator[conditions.Condition]:
    """Yields the condition for each state that differs from what was ``seen`` last, and updates ``seen``."""
    for what, condition in awaited:
        if seen.get(what) != condition:
            seen[what] = condition
            yield condition


def _states(
    cluster: SimulatedCluster, *, is_exact: bool, touched: Mapping[Channel[NodeId], int] | None
) -> Iterator[tuple[str, conditions.Condition]]:
    for channel, held in sorted(cluster.network.held.items()):
        if held:
            count = cluster.network.intercepted[channel]
            if touched is not None and channel.api in _OF_TIMERS:
                count = min(count, touched.get(channel, 0) + 1)
            yield str(channel), conditions.Intercepted(channel=channel, count=count)
    for broker_id, registration in sorted(cluster.controller.image.brokers.items()):
        yield f"broker {broker_id}", conditions.BrokerIs(node=NodeId(broker_id), unfenced=not registration.fenced)
    for partition, state in sorted(cluster.controller.image.partitions.items()):
        yield str(partition), _partition(partition, state, is_exact=is_exact)


def _records(cluster: SimulatedCluster, journal: Journal) -> Iterator[tuple[str, conditions.Condition]]:
    counters = Counters()
    for _, client, record in journal.history:
        if isinstance(record, SendRecorded):
            counters.add_send(record, PRODUCERS[client])
    for count in counters.counts().acked:
        partition, acks = count.topic_partition, Acks(count.acks)
        yield (
            f"records of {partition} acked, acks {acks}",
            conditions.Acked(
                count=count.records,
                acks=acks,
                partitions=(partition,),
                per=conditions.CountPer.TOTAL,
                since=conditions.Since.RUN,
            ),
        )
    for partition, state in sorted(cluster.controller.image.partitions.items()):
        yield from _log_ends(cluster, partition, state)


def _partition(partition: TopicPartition, state: PartitionState, *, is_exact: bool) -> conditions.PartitionIs:
    leader = conditions.NoLeader.NONE if state.leader is None else NodeId(state.leader)
    isr = tuple(sorted(state.isr))
    if not is_exact:
        return conditions.PartitionIs(
            partitions=(partition,), leader=leader if leader is conditions.NoLeader.NONE else None, isr=isr
        )
    return conditions.PartitionIs(partitions=(partition,), leader=leader, isr=isr, elr=tuple(sorted(state.elr)))


def _log_ends(
    cluster: SimulatedCluster, partition: TopicPartition, state: PartitionState
) -> Iterator[tuple[str, conditions.Condition]]:
    for replica in state.replicas:
        node = cluster.nodes[replica]
        if node.core is not None and partition in node.disk.logs:
            end = node.disk.logs[partition].log_end_offset
            yield (
                f"log of {partition} on {replica}",
                conditions.LogEnds(node=NodeId(replica), partition=partition, end=end),
            )
