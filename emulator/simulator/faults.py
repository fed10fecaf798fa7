"""Which actions break something, and which mend it, in the words that the harness of real processes writes.

Verification takes a fencing for explained only while a fault lasts that can cause it, so that what ends has to be told
as well as what begins.
"""

from collections.abc import Collection
from typing import NamedTuple

from emulator.core.types import NodeId
from emulator.simulator.actions import (
    Action,
    ChannelVerb,
    ClockRate,
    Heal,
    LinkVerb,
    NodeVerb,
    OnChannel,
    OnLink,
    OnNode,
    PowerLoss,
    Slow,
)
from emulator.simulator.clock import NORMAL_RATE
from emulator.simulator.network import Link
from emulator.simulator.nodes import CONTROLLER


class Fault(NamedTuple):
    """A fault by name, and what it is done to: a node, or a link."""

    name: str
    target: str


EVERYTHING = Fault("all", "all")
"""Stands for all faults where they end together."""


def faults_of(action: Action) -> tuple[Fault, ...]:
    """Returns the faults that an action begins. One that is over when the action is counts too."""
    match action:
        case OnNode(verb=NodeVerb.PAUSE | NodeVerb.ISOLATE | NodeVerb.KILL as verb, nodes=nodes):
            return tuple(Fault(verb.value, str(node)) for node in nodes)
        case OnNode(verb=NodeVerb.EXPIRE, nodes=nodes):
            return tuple(Fault("lose_responses", f"{node}->{CONTROLLER}") for node in nodes)
        case PowerLoss(nodes=nodes):
            return tuple(Fault("power_loss", str(node)) for node in nodes)
        case ClockRate(node=node, rate_ppm=rate_ppm) if rate_ppm != NORMAL_RATE:
            return (Fault("pause", str(node)),)
        case OnLink(verb=LinkVerb.CUT | LinkVerb.LOSE_RESPONSES | LinkVerb.RESET, source=source, destination=end):
            return (_cut(source, end),)
        case Slow(source=source, destination=end):
            return (_cut(source, end),)
        case OnChannel(verb=ChannelVerb.HOLD, channel=channel):
            return (_cut(channel.source, channel.destination),)
        case _:
            return ()


def mended_by(action: Action, *, broken: Collection[Link]) -> tuple[Fault, ...]:
    """Returns the faults that an action ends.

    Args:
        action: what is done.
        broken: links that were cut, or lost answers, before.
    """
    match action:
        case Heal():
            return (EVERYTHING,)
        case OnLink(verb=LinkVerb.MEND | LinkVerb.RESET, source=source, destination=end):
            return (_cut(source, end),)
        case OnChannel(verb=ChannelVerb.RELEASE, count=None, channel=channel):
            return (_cut(channel.source, channel.destination),)
        case OnNode(verb=NodeVerb.RESUME, nodes=nodes):
            return tuple(Fault("pause", str(node)) for node in nodes)
        case OnNode(verb=NodeVerb.EXPIRE):
            return faults_of(action)
        case OnNode(verb=NodeVerb.REJOIN, nodes=nodes):
            links = tuple(_cut(*link) for link in sorted(broken) if set(link) & set(nodes))
            return (*(Fault("isolate", str(node)) for node in nodes), *links)
        case ClockRate(node=node, rate_ppm=rate_ppm) if rate_ppm == NORMAL_RATE:
            return (Fault("pause", str(node)),)
        case _:
            return ()


def _cut(source: NodeId, destination: NodeId) -> Fault:
    return Fault("cut", f"{source}->{destination}")
