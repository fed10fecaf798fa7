"""Slips in plans: actions that can never do anything, for want of what they are about or with an absurd number."""

from collections.abc import Iterable, Iterator
from typing import Final, assert_never, get_args

from emulator.core.messages import Request
from emulator.core.types import Acks, NodeId, TopicPartition
from emulator.simulator.actions import (
    Action,
    ClockRate,
    CrashWithin,
    Draw,
    ElrFeature,
    Heal,
    MinIsr,
    NodeVerb,
    OnChannel,
    OnLink,
    OnNode,
    PowerLoss,
    Produce,
    Reassign,
    Recreate,
    Slow,
    Wait,
)
from emulator.simulator.network import STREAM
from emulator.simulator.nodes import CLIENT, CONTROLLER
from emulator.simulator.plan import Plan

_APIS: Final = (*sorted(each.__name__.removesuffix("Request") for each in get_args(Request)), STREAM)
_ON_THE_CONTROLLER: Final = frozenset({NodeVerb.KILL, NodeVerb.START, NodeVerb.PAUSE, NodeVerb.RESUME})


def find_slip(plan: Plan, action: Action) -> str | None:
    """Returns why an action can never do anything in this plan; ``None`` if it can."""
    return next(_slips(plan, action), None)


def brokers_of(plan: Plan) -> str:
    """Returns which brokers there are, in words."""
    return "broker 0" if plan.brokers == 1 else f"brokers 0 to {plan.brokers - 1}"


def _slips(plan: Plan, action: Action) -> Iterator[str]:
    match action:
        case Wait(duration_ms=duration_ms):
            yield from _less(duration_ms, 0, "a time")
        case Produce(partition=partition, acks=acks, records=records):
            yield from _unknown_partition(plan, partition)
            if acks is Acks.NONE:
                yield "expected acks all or 1"
            yield from _less(records, 1, "a number of records")
        case OnNode(verb=verb, nodes=nodes):
            yield from _unknown_nodes(plan, nodes, with_controller=verb in _ON_THE_CONTROLLER)
        case PowerLoss(nodes=nodes, kept=kept):
            yield from _unknown_nodes(plan, nodes, with_controller=True)
            yield from _less(kept, 0, "a number of batches")
        case CrashWithin(node=node, after_effects=after_effects, loss=loss):
            yield from _unknown_nodes(plan, (node,))
            yield from _less(after_effects, 0, "a number of changes")
            if loss is not None:
                yield from _less(loss.kept, 0, "a number of batches")
        case ClockRate(node=node, rate_ppm=rate_ppm):
            yield from _unknown_nodes(plan, (node,))
            yield from _less(rate_ppm, 1, "a rate")
        case OnLink(source=source, destination=destination):
            yield from _impossible_link(plan, source, destination)
        case Slow(source=source, destination=destination, latency_ms=latency_ms):
            yield from _impossible_link(plan, source, destination)
            yield from _less(latency_ms, 0, "a time")
        case OnChannel(channel=channel, count=count):
            if channel.api not in _APIS:
                yield f"no such kind of message; there are {', '.join(_APIS)}"
            yield from _impossible_link(plan, channel.source, channel.destination)
            yield from _less(1 if count is None else count, 1, "a number of messages")
        case Draw(number=number):
            yield from _less(number, 0, "a number")
        case MinIsr(topic=topic, value=value):
            yield from _unknown_topic(plan, topic)
            yield from _less(value, 1, "a number of replicas")
        case Reassign(partition=partition, replicas=replicas):
            yield from _unknown_partition(plan, partition)
            yield from _unknown_nodes(plan, replicas)
            if len(set(replicas)) < len(replicas):
                yield "expected different brokers"
        case Recreate(topic=topic):
            yield from _unknown_topic(plan, topic)
        case ElrFeature(level=level):
            if level not in (0, 1):
                yield "expected level 0 or 1"
        case Heal():
            pass
        case _:
            assert_never(action)


def _less(number: int, low: int, what: str) -> Iterator[str]:
    if number < low:
        yield f"expected {what} from {low} on"


def _unknown_topic(plan: Plan, topic: str) -> Iterator[str]:
    if topic not in {each.name for each in plan.topics}:
        yield f"no such topic; there are {', '.join(each.name for each in plan.topics)}"


def _unknown_partition(plan: Plan, partition: TopicPartition) -> Iterator[str]:
    if partition not in plan.partitions:
        yield f"no such partition; there are {', '.join(map(str, plan.partitions))}"


def _unknown_nodes(plan: Plan, nodes: Iterable[NodeId], *, with_controller: bool = False) -> Iterator[str]:
    for node in nodes:
        if with_controller and node not in (*range(plan.brokers), CONTROLLER):
            yield f"no node {node}; there are {brokers_of(plan)} and the controller {CONTROLLER}"
        elif not with_controller and node not in range(plan.brokers):
            yield f"no broker {node}; there are {brokers_of(plan)}"


def _impossible_link(plan: Plan, source: NodeId, destination: NodeId) -> Iterator[str]:
    for node in (source, destination):
        if node not in (*range(plan.brokers), CONTROLLER, CLIENT):
            yield f"no node {node}; there are {brokers_of(plan)}, the controller {CONTROLLER} and the clients {CLIENT}"
    if destination == CLIENT:
        yield "nobody dials the clients"
    if source == destination:
        yield "no node dials itself"
