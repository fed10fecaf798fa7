"""Moves: what a schedule may do next, by intention. Each draws its choices and returns actions, or none if it cannot.

A move looks at the running cluster, as an adversary would: it finds the leader, the last member of the ISR, what is
held. What it draws ends up in the actions' arguments, so a replay draws nothing.
"""

from collections.abc import Callable, Sequence
from random import Random
from types import MappingProxyType
from typing import Final, TypeAlias

from emulator.core.image import PartitionState
from emulator.core.types import Acks, BrokerId, NodeId, TopicPartition
from emulator.simulator.actions import (
    Action,
    ChannelVerb,
    ClockRate,
    Draw,
    Heal,
    LinkVerb,
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
from emulator.simulator.cluster import SimulatedCluster
from emulator.simulator.disk import Keep, TruncationFate, unsynced_batches
from emulator.simulator.network import STREAM, SYNC, Channel, Way
from emulator.simulator.nodes import CLIENT, CONTROLLER, BrokerNode
from emulator.simulator.oracle.oracle import Oracle
from emulator.simulator.profiles import Budget

Actions: TypeAlias = Sequence[Action]


class Situation:
    """What a move may look at, and where it draws from: a stream of chance per concern, so that none shifts others."""

    def __init__(
        self,
        cluster: SimulatedCluster,
        oracle: Oracle,
        partitions: tuple[TopicPartition, ...],
        *,
        budget: Budget,
        fates: tuple[TruncationFate, ...],
        seed: str,
    ) -> None:
        self.cluster = cluster
        self.oracle = oracle
        self.partitions = partitions
        self.budget = budget
        self.fates = fates
        self.workload = Random(f"{seed}/workload")
        self.network = Random(f"{seed}/network")
        self.storage = Random(f"{seed}/storage")
        self.schedule = Random(f"{seed}/schedule")

    @property
    def brokers(self) -> list[BrokerNode]:
        """All brokers."""
        return list(self.cluster.nodes.values())

    @property
    def running(self) -> list[BrokerNode]:
        """Brokers that run."""
        return [node for node in self.brokers if node.core is not None]

    def a_partition(self) -> TopicPartition:
        """Draws a partition."""
        return self.workload.choice(self.partitions)

    def a_state(self) -> tuple[TopicPartition, PartitionState] | None:
        """Draws a partition that has a leader, with its committed state."""
        name = self.a_partition()
        state = self.cluster.state(name)
        return None if state is None or state.leader is None else (name, state)

    def may_crash(self, node: BrokerNode) -> bool:
        """Whether the guarantee still covers the partitions of a broker that ends uncleanly now."""
        if self.budget is Budget.BEYOND:
            return True
        for name, truth in self.oracle.truths.items():
            state = self.cluster.state(name)
            if state is not None and node.broker_id in state.replicas:
                outstanding = {*truth.ledger.outstanding(), node.node_id}
                if len(outstanding) > truth.ledger.allowed:
                    return False
        return True

    def a_victim(self) -> BrokerNode | None:
        """Draws a running broker that may crash."""
        victims = [node for node in self.running if self.may_crash(node)]
        return self.storage.choice(victims) if victims else None


Move: TypeAlias = Callable[[Situation], Actions]

# --- Progress --------------------------------------------------------------------------------------------------------


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


# --- Network ---------------------------------------------------------------------------------------------------------


def _hold(channel: Channel) -> Actions:
    return [OnChannel(verb=ChannelVerb.HOLD, channel=channel)]


def _hold_alter_partition(s: Situation) -> Actions:
    found = s.a_state()
    if found is None or found[1].leader is None:
        return []
    way = s.network.choice((Way.REQUEST, Way.REQUEST, Way.REQUEST, Way.RESPONSE))
    return _hold(Channel(found[1].leader, CONTROLLER, "AlterPartition", way))


def _hold_fetch(s: Situation) -> Actions:
    found = s.a_state()
    if found is None or found[1].leader is None:
        return []
    followers = [replica for replica in found[1].replicas if replica != found[1].leader]
    if not followers:
        return []
    way = s.network.choice((Way.REQUEST, Way.RESPONSE))
    return _hold(Channel(s.network.choice(followers), found[1].leader, "Fetch", way))


def _hold_stream(s: Situation) -> Actions:
    return _hold(Channel(s.network.choice(s.brokers).node_id, CONTROLLER, STREAM, Way.RESPONSE))


def _hold_sync(_: Situation) -> Actions:
    return _hold(Channel(CONTROLLER, CONTROLLER, SYNC, Way.RESPONSE))


def _on_waiting(s: Situation, verb: ChannelVerb, *, count: int | None = None) -> Actions:
    waiting = [channel for channel, messages in s.cluster.network.held.items() if messages]
    if not waiting:
        return []
    return [OnChannel(verb=verb, channel=s.network.choice(waiting), count=count)]


def _release_one(s: Situation) -> Actions:
    return _on_waiting(s, ChannelVerb.RELEASE, count=1)


def _release_newest(s: Situation) -> Actions:
    return _on_waiting(s, ChannelVerb.RELEASE_NEWEST)


def _lose_held(s: Situation) -> Actions:
    waiting = [
        channel
        for channel, messages in s.cluster.network.held.items()
        if messages and channel.api not in (STREAM, SYNC)  # a stream loses nothing, it breaks; a sync completes
    ]
    return [OnChannel(verb=ChannelVerb.LOSE, channel=s.network.choice(waiting))] if waiting else []


def _duplicate_held(s: Situation) -> Actions:
    waiting = [
        channel
        for channel, messages in s.cluster.network.held.items()
        if messages and channel.way is Way.REQUEST and channel.api not in (STREAM, SYNC)
    ]
    return [OnChannel(verb=ChannelVerb.DUPLICATE, channel=s.network.choice(waiting))] if waiting else []


def _a_link(s: Situation) -> tuple[NodeId, NodeId]:
    source = s.network.choice([*(node.node_id for node in s.brokers), CLIENT])
    ends = [*(node.node_id for node in s.brokers if node.node_id != source)]
    if source != CLIENT:
        ends.append(CONTROLLER)
    return source, s.network.choice(ends)


def _on_link(s: Situation, verb: LinkVerb) -> Actions:
    source, destination = _a_link(s)
    return [OnLink(verb=verb, source=source, destination=destination)]


def _cut(s: Situation) -> Actions:
    return _on_link(s, LinkVerb.CUT)


def _lose_responses(s: Situation) -> Actions:
    return _on_link(s, LinkVerb.LOSE_RESPONSES)


def _reset(s: Situation) -> Actions:
    return _on_link(s, LinkVerb.RESET)


def _slow(s: Situation) -> Actions:
    source, destination = _a_link(s)
    return [Slow(source=source, destination=destination, latency_ms=s.network.choice((3, 10, 30, 90)))]


def _isolate(s: Situation) -> Actions:
    return [OnNode(verb=NodeVerb.ISOLATE, nodes=(s.network.choice(s.brokers).node_id,))]


def _lag(s: Situation) -> Actions:
    """A follower stops fetching until it has to leave the ISR."""
    found = s.a_state()
    if found is None or found[1].leader is None:
        return []
    leader = found[1].leader
    followers = [member for member in found[1].isr if member != leader]
    if not followers:
        return []
    return [
        OnLink(verb=LinkVerb.CUT, source=s.network.choice(followers), destination=leader),
        Produce(partition=found[0], acks=Acks.LEADER, records=1),  # an idle partition never lags
        Wait(duration_ms=s.schedule.randint(320, 520)),
    ]


def _fork(s: Situation) -> Actions:
    """The leader appends what no follower gets, and is deposed: it has to truncate when it is back."""
    found = s.a_state()
    if found is None or found[1].leader is None:
        return []
    name, leader = found[0], found[1].leader
    followers = [member for member in found[1].isr if member != leader]
    if not followers:
        return []
    cuts = [OnLink(verb=LinkVerb.CUT, source=member, destination=leader) for member in followers]
    return [
        *cuts,
        Produce(partition=name, acks=Acks.LEADER, records=s.workload.choice((1, 2))),
        Wait(duration_ms=s.schedule.randint(3, 20)),
        OnLink(verb=LinkVerb.CUT, source=leader, destination=CONTROLLER),
        Wait(duration_ms=s.schedule.randint(420, 520)),
        OnNode(verb=NodeVerb.REJOIN, nodes=(leader,)),
        Wait(duration_ms=s.schedule.randint(5, 60)),
    ]


def _race_shrink(s: Situation) -> Actions:
    """S09: a proposal to drop one follower is under way while another leaves the ISR and comes back, behind."""
    found = s.a_state()
    if found is None or found[1].leader is None or len(found[1].isr) < 3:
        return []
    name, leader = found[0], found[1].leader
    dropped, returning = s.network.sample([member for member in found[1].isr if member != leader], 2)
    proposals = Channel(leader, CONTROLLER, "AlterPartition", Way.REQUEST)
    heartbeats = Channel(returning, CONTROLLER, "BrokerHeartbeat", Way.REQUEST)
    return [
        OnChannel(verb=ChannelVerb.HOLD, channel=proposals),
        OnLink(verb=LinkVerb.CUT, source=dropped, destination=leader),
        Produce(partition=name, acks=Acks.LEADER, records=1),
        Wait(duration_ms=s.schedule.randint(330, 480)),
        OnLink(verb=LinkVerb.MEND, source=dropped, destination=leader),
        Wait(duration_ms=s.schedule.randint(20, 60)),
        OnChannel(verb=ChannelVerb.HOLD, channel=heartbeats),
        Wait(duration_ms=s.schedule.randint(420, 520)),
        OnLink(verb=LinkVerb.CUT, source=returning, destination=leader),
        Produce(partition=name, acks=Acks.ALL, records=1),
        Wait(duration_ms=s.schedule.randint(5, 120)),
        OnChannel(verb=ChannelVerb.RELEASE, channel=heartbeats),
        Wait(duration_ms=s.schedule.randint(2, 20)),
        OnChannel(verb=ChannelVerb.RELEASE, channel=proposals),
        Wait(duration_ms=s.schedule.randint(2, 20)),
    ]


def _race_expand(s: Situation) -> Actions:
    """S10: a proposal to add a follower is under way while that follower loses its log and comes back."""
    found = s.a_state()
    if found is None or found[1].leader is None:
        return []
    name, leader = found[0], found[1].leader
    followers = [member for member in found[1].isr if member != leader and s.may_crash(s.cluster.nodes[member])]
    if not followers:
        return []
    joining = s.network.choice(followers)
    proposals = Channel(leader, CONTROLLER, "AlterPartition", Way.REQUEST)
    return [
        Produce(partition=name, acks=Acks.ALL, records=1),
        OnNode(verb=NodeVerb.EXPIRE, nodes=(joining,)),
        OnChannel(verb=ChannelVerb.HOLD, channel=proposals),
        Wait(duration_ms=s.schedule.randint(100, 260)),
        _loses_power(s, (joining,)),
        OnLink(verb=LinkVerb.CUT, source=joining, destination=leader),
        OnNode(verb=NodeVerb.START, nodes=(joining,)),
        Wait(duration_ms=s.schedule.randint(450, 700)),
        OnChannel(verb=ChannelVerb.RELEASE, channel=proposals),
        Wait(duration_ms=s.schedule.randint(2, 20)),
    ]


def _race_cut(s: Situation) -> Actions:
    """S35: a deposed leader cuts what it alone had, and loses its power before that is synced."""
    found = s.a_state()
    if found is None or found[1].leader is None or not s.may_crash(s.cluster.nodes[found[1].leader]):
        return []
    name, leader = found[0], found[1].leader
    others = [replica for replica in found[1].replicas if replica != leader]
    cuts = [OnLink(verb=LinkVerb.CUT, source=other, destination=leader) for other in others]
    return [
        *cuts,
        Produce(partition=name, acks=Acks.LEADER, records=1),
        Wait(duration_ms=s.schedule.randint(3, 20)),
        OnNode(verb=NodeVerb.SYNC, nodes=(leader,)),
        OnLink(verb=LinkVerb.CUT, source=leader, destination=CONTROLLER),
        Wait(duration_ms=s.schedule.randint(420, 520)),
        Produce(partition=name, acks=Acks.ALL, records=1),
        Wait(duration_ms=s.schedule.randint(350, 450)),
        OnNode(verb=NodeVerb.REJOIN, nodes=(leader,)),
        Wait(duration_ms=s.schedule.randint(100, 700)),
        _loses_power(s, (leader,)),
        OnNode(verb=NodeVerb.START, nodes=(leader,)),
        Wait(duration_ms=s.schedule.randint(450, 700)),
    ]


def _race_roles(s: Situation) -> Actions:
    """S36: a leader loses the end of its log, and is back before anybody has missed it; another replica has a fork."""
    found = s.a_state()
    if found is None or found[1].leader is None or len(found[1].isr) < 3:
        return []
    name, forked = found[0], found[1].leader
    heir, other = [replica for replica in found[1].replicas if replica in found[1].isr and replica != forked][:2]
    if not s.may_crash(s.cluster.nodes[heir]):
        return []
    append = Produce(partition=name, acks=Acks.ALL, records=1)
    return [
        *(OnLink(verb=LinkVerb.CUT, source=member, destination=forked) for member in (heir, other)),
        Produce(partition=name, acks=Acks.LEADER, records=s.workload.choice((1, 2))),
        Wait(duration_ms=s.schedule.randint(3, 20)),
        OnLink(verb=LinkVerb.CUT, source=forked, destination=CONTROLLER),
        Wait(duration_ms=s.schedule.randint(420, 520)),
        Produce(partition=name, acks=Acks.ALL, records=2),
        Wait(duration_ms=s.schedule.randint(350, 900)),
        OnNode(verb=NodeVerb.SYNC, nodes=(heir,)),
        append,
        Wait(duration_ms=s.schedule.randint(20, 40)),
        OnNode(verb=NodeVerb.EXPIRE, nodes=(heir,)),
        Wait(duration_ms=s.schedule.randint(20, 100)),
        OnNode(verb=NodeVerb.EXPIRE, nodes=(other,)),
        Wait(duration_ms=s.schedule.randint(20, 100)),
        append,
        Wait(duration_ms=s.schedule.randint(20, 100)),
        _loses_power(s, (heir,)),
        OnNode(verb=NodeVerb.START, nodes=(heir,)),
        Wait(duration_ms=s.schedule.randint(700, 900)),
        OnNode(verb=NodeVerb.EXPIRE, nodes=(other,)),
        Wait(duration_ms=s.schedule.randint(20, 100)),
        OnNode(verb=NodeVerb.REJOIN, nodes=(forked,)),
        Wait(duration_ms=s.schedule.randint(400, 700)),
    ]


# --- Processes -------------------------------------------------------------------------------------------------------


def _loses_power(s: Situation, nodes: tuple[NodeId, ...]) -> PowerLoss:
    most = max(
        (unsynced_batches(s.cluster.nodes[BrokerId(node)].disk) for node in nodes if node != CONTROLLER), default=0
    )
    return PowerLoss(
        nodes=nodes,
        keep=s.storage.choice((Keep.NONE, Keep.NONE, Keep.PREFIX, Keep.TORN, Keep.PAGES)),
        kept=s.storage.randint(0, max(0, most - 1)),
        truncation=s.storage.choice(s.fates),
    )


def _kill(s: Situation) -> Actions:
    victim = s.a_victim()
    return [] if victim is None else [OnNode(verb=NodeVerb.KILL, nodes=(victim.node_id,))]


def _power_loss(s: Situation) -> Actions:
    victim = s.a_victim()
    return [] if victim is None else [_loses_power(s, (victim.node_id,))]


def _bounce(s: Situation) -> Actions:
    """A crash and an immediate restart, and time enough to register."""
    victim = s.a_victim()
    if victim is None:
        return []
    crash: Action = _loses_power(s, (victim.node_id,))
    if s.storage.random() < 0.2:
        crash = OnNode(verb=NodeVerb.KILL, nodes=(victim.node_id,))
    start = OnNode(verb=NodeVerb.START, nodes=(victim.node_id,))
    return [crash, start, Wait(duration_ms=s.schedule.randint(420, 700))]


def _replace_disk(s: Situation) -> Actions:
    victim = s.a_victim()
    return [] if victim is None else [OnNode(verb=NodeVerb.REPLACE_DISK, nodes=(victim.node_id,))]


def _stop(s: Situation) -> Actions:
    running = s.running
    return [OnNode(verb=NodeVerb.STOP, nodes=(s.schedule.choice(running).node_id,))] if running else []


def _all(s: Situation) -> tuple[NodeId, ...]:
    return tuple(node.node_id for node in s.brokers)


def _power_loss_all(s: Situation) -> Actions:
    nodes = _all(s)
    return [
        _loses_power(s, nodes),
        *(OnNode(verb=NodeVerb.START, nodes=(node,)) for node in s.schedule.sample(nodes, len(nodes))),
        Wait(duration_ms=s.schedule.randint(300, 700)),
    ]


def _kill_all(s: Situation) -> Actions:
    return [OnNode(verb=NodeVerb.KILL, nodes=_all(s)), OnNode(verb=NodeVerb.START, nodes=_all(s))]


def _sync(s: Situation) -> Actions:
    return [OnNode(verb=NodeVerb.SYNC, nodes=(s.storage.choice(s.brokers).node_id,))]


def _pause(s: Situation) -> Actions:
    running = [node for node in s.running if not node.is_paused]
    return [OnNode(verb=NodeVerb.PAUSE, nodes=(s.schedule.choice(running).node_id,))] if running else []


def _resume(s: Situation) -> Actions:
    paused = [node.node_id for node in s.brokers if node.is_paused]
    if s.cluster.controller_node.is_paused:
        paused.append(CONTROLLER)
    return [OnNode(verb=NodeVerb.RESUME, nodes=(s.schedule.choice(paused),))] if paused else []


def _clock(s: Situation) -> Actions:
    rate = s.schedule.choice((700_000, 950_000, 1_000_000, 1_050_000, 1_400_000))
    return [ClockRate(node=s.schedule.choice(s.brokers).node_id, rate_ppm=rate)]


# --- Controller ------------------------------------------------------------------------------------------------------


def _expire(s: Situation) -> Actions:
    running = s.running
    return [OnNode(verb=NodeVerb.EXPIRE, nodes=(s.schedule.choice(running).node_id,))] if running else []


def _depose(s: Situation) -> Actions:
    found = s.a_state()
    if found is None or found[1].leader is None:
        return []
    return [OnNode(verb=NodeVerb.EXPIRE, nodes=(found[1].leader,))]


def _on_controller(s: Situation, crash: Action) -> Actions:
    if s.cluster.controller_node.core is None:
        return []
    start = OnNode(verb=NodeVerb.START, nodes=(CONTROLLER,))
    return [crash, Wait(duration_ms=s.schedule.choice((1, 20, 200, 500))), start]


def _draw(s: Situation) -> Actions:
    return [Draw(number=s.schedule.randrange(len(s.brokers)))]


def _kill_controller(s: Situation) -> Actions:
    return _on_controller(s, OnNode(verb=NodeVerb.KILL, nodes=(CONTROLLER,)))


def _power_loss_controller(s: Situation) -> Actions:
    return _on_controller(s, _loses_power(s, (CONTROLLER,)))


def _pause_controller(s: Situation) -> Actions:
    return [OnNode(verb=NodeVerb.PAUSE, nodes=(CONTROLLER,))]


# --- Administrators --------------------------------------------------------------------------------------------------


def _min_isr(s: Situation) -> Actions:
    name = s.a_partition()
    state = s.cluster.state(name)
    return [] if state is None else [MinIsr(topic=name.topic, value=s.schedule.randint(1, len(state.replicas)))]


def _reassign(s: Situation) -> Actions:
    name = s.a_partition()
    state = s.cluster.state(name)
    if state is None:
        return []
    is_moving = bool(state.adding_replicas or state.removing_replicas)
    if is_moving and s.schedule.random() < 0.4:
        return [Reassign(partition=name, replicas=())]
    factor = len(state.replicas) - len(state.adding_replicas)
    targets = s.schedule.sample([node.node_id for node in s.brokers], min(factor, len(s.brokers)))
    return [Reassign(partition=name, replicas=tuple(targets))]


def _recreate(s: Situation) -> Actions:
    return [Recreate(topic=s.a_partition().topic)]


def _race_min_isr(s: Situation) -> Actions:
    """S17: one member of the ISR is left, and commits alone once fewer are asked for; then it is cut off."""
    found = s.a_state()
    if found is None or found[1].leader is None:
        return []
    name, leader = found[0], found[1].leader
    others = [replica for replica in found[1].replicas if replica != leader]
    return [
        *(OnLink(verb=LinkVerb.CUT, source=other, destination=leader) for other in others),
        Produce(partition=name, acks=Acks.LEADER, records=1),
        Wait(duration_ms=s.schedule.randint(450, 700)),
        MinIsr(topic=name.topic, value=1),
        Wait(duration_ms=s.schedule.randint(5, 20)),
        Produce(partition=name, acks=Acks.ALL, records=1),
        Wait(duration_ms=s.schedule.randint(5, 40)),
        OnLink(verb=LinkVerb.CUT, source=leader, destination=CONTROLLER),
        Wait(duration_ms=s.schedule.randint(420, 600)),
    ]


def _race_raised(s: Situation) -> Actions:
    """S38: min ISR is raised, and its leader hears of the ISR that is accepted next before that; then it is cut off."""
    found = s.a_state()
    if found is None or found[1].leader is None:
        return []
    name, leader = found[0], found[1].leader
    others = [replica for replica in found[1].replicas if replica != leader]
    return [
        MinIsr(topic=name.topic, value=1),
        Wait(duration_ms=s.schedule.randint(5, 40)),
        *_hold(Channel(leader, CONTROLLER, STREAM, Way.RESPONSE)),
        MinIsr(topic=name.topic, value=2),
        *(OnLink(verb=LinkVerb.CUT, source=other, destination=leader) for other in others),
        Produce(partition=name, acks=Acks.LEADER, records=1),
        Wait(duration_ms=s.schedule.randint(450, 700)),
        Produce(partition=name, acks=Acks.ALL, records=1),
        Wait(duration_ms=s.schedule.randint(5, 40)),
        OnLink(verb=LinkVerb.CUT, source=leader, destination=CONTROLLER),
        Wait(duration_ms=s.schedule.randint(420, 600)),
    ]


def _race_recreate(s: Situation) -> Actions:
    """S26, S27: a topic is made anew while a replica is down; its log is there when it comes back."""
    found = s.a_state()
    if found is None or found[1].leader is None:
        return []
    name, leader = found[0], found[1].leader
    others = [replica for replica in found[1].replicas if replica != leader and s.cluster.nodes[replica].core]
    if not others:
        return []
    absent = s.schedule.choice(others)
    return [
        Produce(partition=name, acks=Acks.ALL, records=2),
        Wait(duration_ms=s.schedule.randint(20, 60)),
        OnNode(verb=NodeVerb.STOP, nodes=(absent,)),
        Wait(duration_ms=s.schedule.randint(20, 200)),
        Recreate(topic=name.topic),
        Wait(duration_ms=s.schedule.randint(5, 80)),
        Produce(partition=name, acks=Acks.ALL, records=1),
        OnNode(verb=NodeVerb.START, nodes=(absent,)),
        Wait(duration_ms=s.schedule.randint(450, 900)),
        OnNode(verb=NodeVerb.EXPIRE, nodes=(leader,)),
        Wait(duration_ms=s.schedule.randint(20, 200)),
    ]


def _race_reassign(s: Situation) -> Actions:
    """S37: a member of the ELR is moved away, which deletes its log, and comes back with nothing; then the ISR goes.

    Partition 0 stays where it is: min ISR is capped by its replicas.
    """
    found = s.a_state()
    if found is None or found[0].partition == 0 or found[1].leader is None or len(found[1].replicas) < 3:
        return []
    name, leader, replicas = found[0], found[1].leader, found[1].replicas
    moved = s.schedule.choice([replica for replica in replicas if replica != leader])
    stay = [NodeId(replica) for replica in replicas if replica != moved]
    return [
        MinIsr(topic=name.topic, value=len(replicas)),
        Wait(duration_ms=s.schedule.randint(5, 20)),
        Produce(partition=name, acks=Acks.ALL, records=1),
        Wait(duration_ms=s.schedule.randint(20, 40)),
        OnLink(verb=LinkVerb.CUT, source=moved, destination=leader),
        Produce(partition=name, acks=Acks.LEADER, records=1),
        Wait(duration_ms=s.schedule.randint(450, 600)),
        Reassign(partition=name, replicas=tuple(stay)),
        Wait(duration_ms=s.schedule.randint(20, 100)),
        Reassign(partition=name, replicas=(NodeId(moved), *stay)),
        Wait(duration_ms=s.schedule.randint(20, 100)),
        *(OnLink(verb=LinkVerb.CUT, source=member, destination=CONTROLLER) for member in stay),
        Wait(duration_ms=s.schedule.randint(450, 700)),
    ]


def _race_cancel(s: Situation) -> Actions:
    """A reassignment is cancelled when only a replica that was being added is in sync, and has committed alone."""
    found = s.a_state()
    if found is None or found[1].leader is None or len(s.brokers) < 4:
        return []
    name, leader, replicas = found[0], found[1].leader, found[1].replicas
    others = [replica for replica in replicas if replica != leader]
    spare = [node.node_id for node in s.brokers if node.node_id not in replicas]
    added = s.schedule.choice(spare or others)
    late = s.schedule.choice([node.node_id for node in s.brokers if node.node_id not in (added, leader)])
    return [
        MinIsr(topic=name.topic, value=1),
        *(OnLink(verb=LinkVerb.CUT, source=late, destination=each) for each in (leader, added)),
        Reassign(partition=name, replicas=(added, late)),
        Wait(duration_ms=s.schedule.randint(200, 400)),
        *(OnLink(verb=LinkVerb.CUT, source=other, destination=CONTROLLER) for other in others if other != added),
        Wait(duration_ms=s.schedule.randint(450, 600)),
        OnNode(verb=NodeVerb.PAUSE, nodes=(leader,)),
        Wait(duration_ms=s.schedule.randint(450, 600)),
        OnLink(verb=LinkVerb.CUT, source=leader, destination=added),
        Produce(partition=name, acks=Acks.ALL, records=1),
        Wait(duration_ms=s.schedule.randint(350, 450)),
        Reassign(partition=name, replicas=()),
        Wait(duration_ms=s.schedule.randint(5, 40)),
        OnNode(verb=NodeVerb.RESUME, nodes=(leader,)),
        Wait(duration_ms=s.schedule.randint(450, 700)),
    ]


def _race_readers(s: Situation) -> Actions:
    """S22: a follower has two forks, one above the other, and cuts the upper one first; a consumer waits there.

    The consumer was sent there by the leader of before, whose answer is late.
    """
    found = s.a_state()
    if found is None or found[1].leader is None or len(found[1].isr) != 3:
        return []
    name, leader = found[0], found[1].leader
    forked, heir = s.schedule.sample([member for member in found[1].isr if member != leader], 2)
    answers = Channel(CLIENT, leader, "Fetch", Way.RESPONSE)
    append = Produce(partition=name, acks=Acks.LEADER, records=1)
    expires = Wait(duration_ms=s.schedule.randint(750, 950))
    return [
        *_hold(answers),
        Wait(duration_ms=s.schedule.randint(2_050, 2_150)),  # consumers ask the leader again where to read
        OnLink(verb=LinkVerb.CUT, source=heir, destination=leader),
        append,  # gets to the follower, and no further
        Wait(duration_ms=s.schedule.randint(5, 20)),
        OnNode(verb=NodeVerb.PAUSE, nodes=(leader,)),
        OnLink(verb=LinkVerb.CUT, source=forked, destination=CONTROLLER),
        expires,
        append,  # the heir's own
        expires,
        OnNode(verb=NodeVerb.PAUSE, nodes=(heir,)),
        OnLink(verb=LinkVerb.CUT, source=heir, destination=forked),
        OnLink(verb=LinkVerb.MEND, source=forked, destination=CONTROLLER),
        expires,
        append,  # on top of the follower's fork: it leads
        expires,
        OnLink(verb=LinkVerb.CUT, source=forked, destination=CONTROLLER),
        OnNode(verb=NodeVerb.RESUME, nodes=(heir,)),
        expires,
        OnNode(verb=NodeVerb.RESUME, nodes=(leader,)),
        OnLink(verb=LinkVerb.CUT, source=forked, destination=heir),
        OnLink(verb=LinkVerb.MEND, source=forked, destination=CONTROLLER),
        Wait(duration_ms=s.schedule.randint(2_050, 2_150)),  # everybody knows who leads
        OnChannel(verb=ChannelVerb.RELEASE, channel=answers),
        Wait(duration_ms=s.schedule.randint(2, 20)),
        OnLink(verb=LinkVerb.MEND, source=forked, destination=heir),
        Wait(duration_ms=s.schedule.randint(60, 200)),
    ]


MOVES: Final = MappingProxyType(
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
        "hold_alter_partition": _hold_alter_partition,
        "hold_fetch": _hold_fetch,
        "hold_stream": _hold_stream,
        "hold_sync": _hold_sync,
        "release_one": _release_one,
        "release_newest": _release_newest,
        "lose_held": _lose_held,
        "duplicate_held": _duplicate_held,
        "min_isr": _min_isr,
        "reassign": _reassign,
        "recreate": _recreate,
        "race_min_isr": _race_min_isr,
        "race_raised": _race_raised,
        "race_recreate": _race_recreate,
        "race_reassign": _race_reassign,
        "race_cancel": _race_cancel,
        "race_readers": _race_readers,
        "cut": _cut,
        "lose_responses": _lose_responses,
        "reset": _reset,
        "slow": _slow,
        "isolate": _isolate,
        "lag": _lag,
        "fork": _fork,
        "race_shrink": _race_shrink,
        "race_expand": _race_expand,
        "race_cut": _race_cut,
        "race_roles": _race_roles,
        "kill": _kill,
        "power_loss": _power_loss,
        "bounce": _bounce,
        "replace_disk": _replace_disk,
        "stop": _stop,
        "power_loss_all": _power_loss_all,
        "kill_all": _kill_all,
        "sync": _sync,
        "pause": _pause,
        "resume": _resume,
        "clock": _clock,
        "expire": _expire,
        "depose": _depose,
        "draw": _draw,
        "kill_controller": _kill_controller,
        "power_loss_controller": _power_loss_controller,
        "pause_controller": _pause_controller,
    }
)
"""By the name that profiles use."""
