"""Races beyond the guarantee: what is lost anyway is not the point, but what the rules for unclean elections save.

Each brings a partition to an unclean election in which the rule decides whether an acknowledged record survives. The
number that each begins with is its row in docs/failures.md.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from emulator.core.types import Acks, NodeId
from emulator.simulator.actions import Draw, LinkVerb, MinIsr, NodeVerb, OnLink, OnNode, PowerLoss, Produce, Wait
from emulator.simulator.cluster_view import Actions, ClusterView, Move
from emulator.simulator.disk import Keep, TruncationFate
from emulator.simulator.nodes import CONTROLLER


def _race_pick(view: ClusterView) -> Actions:
    """S34: two replicas may be elected uncleanly: the preferred one is empty, the other has all records."""
    led = view.draw_led_partition()
    if led is None or len(led.state.replicas) < 3:
        return []
    name, leader, state = led
    empty, full = [replica for replica in state.replicas if replica != leader][:2]
    return [
        MinIsr(topic=name.topic, value=1),
        OnLink(verb=LinkVerb.CUT, source=empty, destination=leader),
        OnLink(verb=LinkVerb.CUT, source=full, destination=CONTROLLER),
        Produce(partition=name, acks=Acks.LEADER, records=1),
        Wait(duration_ms=view.schedule.randint(500, 650)),
        Produce(partition=name, acks=Acks.ALL, records=1),
        Wait(duration_ms=view.schedule.randint(20, 60)),
        Draw(number=1),
        OnNode(verb=NodeVerb.KILL, nodes=(leader,)),
        OnLink(verb=LinkVerb.MEND, source=full, destination=CONTROLLER),
        Wait(duration_ms=view.schedule.randint(500, 650)),
    ]


def _race_recovering(view: ClusterView) -> Actions:
    """S23: a leader that was elected uncleanly gets requests before it has recovered, and is replaced uncleanly."""
    led = view.draw_led_partition()
    if led is None or len(led.state.replicas) < 3:
        return []
    name, leader, state = led
    second, third = [replica for replica in state.replicas if replica != leader][:2]
    return [
        MinIsr(topic=name.topic, value=1),
        OnLink(verb=LinkVerb.CUT, source=second, destination=CONTROLLER),
        OnLink(verb=LinkVerb.CUT, source=third, destination=CONTROLLER),
        OnLink(verb=LinkVerb.CUT, source=third, destination=second),
        Wait(duration_ms=view.schedule.randint(500, 650)),
        OnNode(verb=NodeVerb.KILL, nodes=(leader,)),
        OnLink(verb=LinkVerb.MEND, source=second, destination=CONTROLLER),
        Wait(duration_ms=view.schedule.randint(500, 650)),
        Produce(partition=name, acks=Acks.ALL, records=1),
        Wait(duration_ms=view.schedule.randint(20, 60)),
        OnLink(verb=LinkVerb.CUT, source=second, destination=CONTROLLER),
        OnLink(verb=LinkVerb.MEND, source=third, destination=CONTROLLER),
        Wait(duration_ms=view.schedule.randint(500, 650)),
    ]


def _race_last_known(view: ClusterView) -> Actions:
    """S33: all candidates lose power; the only one with a synced record restarts, fails, and returns late."""
    led = view.draw_led_partition()
    if led is None or len(led.state.isr) < 2:
        return []
    name, leader, state = led
    keeper = view.storage.choice([member for member in state.isr if member != leader])
    everybody = tuple(NodeId(replica) for replica in state.replicas)
    everybody_else = tuple(node for node in everybody if node != keeper)
    return [
        Produce(partition=name, acks=Acks.ALL, records=1),
        Wait(duration_ms=view.schedule.randint(20, 60)),
        OnNode(verb=NodeVerb.SYNC, nodes=(keeper,)),
        PowerLoss(nodes=everybody, keep=Keep.NONE, kept=0, truncation=TruncationFate.KEPT),
        OnNode(verb=NodeVerb.START, nodes=(keeper,)),
        Wait(duration_ms=view.schedule.randint(450, 650)),
        OnNode(verb=NodeVerb.KILL, nodes=(keeper,)),
        OnNode(verb=NodeVerb.START, nodes=everybody_else),
        Wait(duration_ms=view.schedule.randint(900, 1_500)),
        OnNode(verb=NodeVerb.START, nodes=(keeper,)),
        Wait(duration_ms=view.schedule.randint(450, 650)),
    ]


UNCLEAN_RACES: Final[Mapping[str, Move]] = MappingProxyType(
    {"race_pick": _race_pick, "race_recovering": _race_recovering, "race_last_known": _race_last_known}
)
"""By the name that profiles use."""
