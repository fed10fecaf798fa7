"""Moves that get things on: clients produce, time passes, what is down, held or broken comes back."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from emulator.core.types import Acks
from emulator.simulator.actions import (
    ChannelVerb,
    Heal,
    NodeVerb,
    OnChannel,
    OnNode,
    Produce,
    Wait,
)
from emulator.simulator.nodes import CONTROLLER
from emulator.simulator.situation import Actions, Move, Situation


def _produce(s: Situation) -> Actions:
    return [
        Produce(partition=s.a_partition(), acks=Acks.ALL, records=s.workload.choice((1, 1, 1, 2, 5)))
        for _ in range(s.workload.choice((1, 1, 2, 4, 6)))
    ]


def _produce_one(s: Situation) -> Actions:
    return [Produce(partition=s.a_partition(), acks=Acks.LEADER, records=s.workload.choice((1, 1, 2)))]


def _step(s: Situation) -> Actions:
    return [Wait(duration_ms=s.schedule.randint(1, 4))]


def _pass(s: Situation) -> Actions:
    return [Wait(duration_ms=s.schedule.randint(8, 80))]


def _linger(s: Situation) -> Actions:
    return [Wait(duration_ms=s.schedule.randint(250, 600))]


def _start(s: Situation) -> Actions:
    down = [node.node_id for node in s.brokers if node.core is None]
    if s.cluster.controller_node.core is None:
        down.append(CONTROLLER)
    return [OnNode(verb=NodeVerb.START, nodes=(s.schedule.choice(down),))] if down else []


def _release(s: Situation) -> Actions:
    held = list(s.cluster.network.held)
    return [OnChannel(verb=ChannelVerb.RELEASE, channel=s.network.choice(held))] if held else []


def _rejoin(s: Situation) -> Actions:
    network = s.cluster.network
    broken = sorted({end for link in (*network.cuts, *network.losing) for end in link if end in s.cluster.nodes})
    return [OnNode(verb=NodeVerb.REJOIN, nodes=(s.network.choice(broken),))] if broken else []


def _heal(s: Situation) -> Actions:
    return [] if s.cluster.network.is_whole else [Heal()]


PROGRESS_MOVES: Final[Mapping[str, Move]] = MappingProxyType(
    {
        "produce": _produce,
        "produce_one": _produce_one,
        "step": _step,
        "pass": _pass,
        "linger": _linger,
        "start": _start,
        "release": _release,
        "rejoin": _rejoin,
        "heal": _heal,
    }
)
"""By the name that profiles use."""
