"""Administrators' moves: min ISR, reassignments, recreated topics; and races in which such changes lost records.

The simple moves make one change, at any moment. A race first brings the cluster into a state in which that change is
dangerous; the numbers are rows of docs/failures.md.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from laststand.emulator.core import admin_messages
from laststand.emulator.core.types import BrokerId, TopicPartition, Way
from laststand.emulator.plan import actions
from laststand.emulator.plan.channels import STREAM, Channel, Link
from laststand.emulator.plan.fields import PRODUCER_ALL, PRODUCER_LEADER
from laststand.emulator.plan.lines import elr_feature, min_isr
from laststand.emulator.simulator.moves.cluster_view import Actions, ClusterView, Move


def _min_isr(view: ClusterView) -> Actions:
    name = view.draw_partition()
    state = view.cluster.state(name)
    return [] if state is None else [min_isr(name.topic, view.schedule.randint(1, len(state.replicas)))]


def _reassign(view: ClusterView) -> Actions:
    name = view.draw_partition()
    state = view.cluster.state(name)
    if state is None:
        return []
    is_moving = bool(state.adding_replicas or state.removing_replicas)
    if is_moving and view.schedule.random() < 0.4:
        return [actions.CancelReassignment(partition=name)]
    factor = len(state.replicas) - len(state.adding_replicas)
    targets = view.schedule.sample([node.broker_id for node in view.brokers], min(factor, len(view.brokers)))
    return [actions.Reassign(partition=name, replicas=tuple(targets))]


def _recreate(view: ClusterView) -> Actions:
    return [actions.RecreateTopic(name=view.draw_partition().topic)]


def _race_min_isr(view: ClusterView) -> Actions:
    """S17: the last ISR member commits alone after min ISR was lowered; then it is isolated."""
    led = view.draw_led_partition()
    if led is None:
        return []
    name, leader, state = led
    others = [replica for replica in state.replicas if replica != leader]
    return [
        *(actions.Cut(link=Link(other, leader)) for other in others),
        actions.Produce(partition=name, producer=PRODUCER_LEADER, records=1),
        actions.Wait(duration_ms=view.past_lag_ms()),
        min_isr(name.topic, 1),
        actions.Wait(duration_ms=view.schedule.randint(5, 20)),
        actions.Produce(partition=name, producer=PRODUCER_ALL, records=1),
        actions.Wait(duration_ms=view.schedule.randint(5, 40)),
        actions.Cut(link=Link(leader, view.controller_id)),
        actions.Wait(duration_ms=view.past_session_ms(150)),
    ]


def _race_raised(view: ClusterView) -> Actions:
    """S38: min ISR is raised; the leader learns of the next ISR change first, and is isolated."""
    led = view.draw_led_partition()
    if led is None:
        return []
    name, leader, state = led
    others = [replica for replica in state.replicas if replica != leader]
    return [
        min_isr(name.topic, 1),
        actions.Wait(duration_ms=view.schedule.randint(5, 40)),
        actions.Hold(channel=Channel(leader, view.controller_id, STREAM, Way.RESPONSE)),
        min_isr(name.topic, 2),
        *(actions.Cut(link=Link(other, leader)) for other in others),
        actions.Produce(partition=name, producer=PRODUCER_LEADER, records=1),
        actions.Wait(duration_ms=view.past_lag_ms()),
        actions.Produce(partition=name, producer=PRODUCER_ALL, records=1),
        actions.Wait(duration_ms=view.schedule.randint(5, 40)),
        actions.Cut(link=Link(leader, view.controller_id)),
        actions.Wait(duration_ms=view.past_session_ms(150)),
    ]


def _race_recreate(view: ClusterView) -> Actions:
    """S26, S27: a topic is recreated while a replica is down, which returns with the log of the old topic."""
    led = view.draw_led_partition()
    if led is None:
        return []
    name, leader, state = led
    others = [replica for replica in state.replicas if replica != leader and view.cluster.nodes[replica].core]
    if not others:
        return []
    absent = view.schedule.choice(others)
    return [
        actions.Produce(partition=name, producer=PRODUCER_ALL, records=2),
        actions.Wait(duration_ms=view.schedule.randint(20, 60)),
        actions.Stop(nodes=(absent,)),
        actions.Wait(duration_ms=view.schedule.randint(20, 200)),
        actions.RecreateTopic(name=name.topic),
        actions.Wait(duration_ms=view.schedule.randint(5, 80)),
        actions.Produce(partition=name, producer=PRODUCER_ALL, records=1),
        actions.Start(nodes=(absent,)),
        actions.Wait(duration_ms=view.past_session_ms(225)),
        actions.Expire(nodes=(leader,)),
        actions.Wait(duration_ms=view.schedule.randint(20, 200)),
    ]


def _race_produce(view: ClusterView) -> Actions:
    """S41: a topic is recreated; its producer learns of the new topic before the brokers do, and sends to them."""
    led = view.draw_led_partition()
    if led is None or len(led.state.isr) == len(view.brokers):
        return []
    streams = [Channel(member, view.controller_id, STREAM, Way.RESPONSE) for member in led.state.isr]
    return [
        *(actions.Hold(channel=stream) for stream in streams),
        actions.RecreateTopic(name=led.name.topic),
        actions.Wait(duration_ms=view.schedule.randint(2_050, 2_150)),  # producers ask again who leads
        actions.Produce(partition=led.name, producer=PRODUCER_ALL, records=1),
        actions.Wait(duration_ms=view.schedule.randint(20, 100)),
        *(actions.Release(channel=stream) for stream in streams),
        actions.Wait(duration_ms=view.schedule.randint(20, 200)),
    ]


def _race_reassign(view: ClusterView) -> Actions:
    """S37: an ELR member is reassigned away, which deletes its log, and returns empty; then the ISR fails.

    Partition 0 is not moved: without ``min_isr_per_partition`` its replicas cap min ISR.
    """
    led = view.draw_led_partition()
    if led is None or led.name.partition == 0 or len(led.state.replicas) < 3:
        return []
    name, leader, replicas = led.name, led.leader, led.state.replicas
    moved = view.schedule.choice([replica for replica in replicas if replica != leader])
    stay = [replica for replica in replicas if replica != moved]
    return [
        min_isr(name.topic, len(replicas)),
        actions.Wait(duration_ms=view.schedule.randint(5, 20)),
        actions.Produce(partition=name, producer=PRODUCER_ALL, records=1),
        actions.Wait(duration_ms=view.schedule.randint(20, 40)),
        actions.Cut(link=Link(moved, leader)),
        actions.Produce(partition=name, producer=PRODUCER_LEADER, records=1),
        actions.Wait(duration_ms=view.past_lag_ms()),
        actions.Reassign(partition=name, replicas=tuple(stay)),
        actions.Wait(duration_ms=view.schedule.randint(20, 100)),
        actions.Reassign(partition=name, replicas=(moved, *stay)),
        actions.Wait(duration_ms=view.schedule.randint(20, 100)),
        *(actions.Cut(link=Link(member, view.controller_id)) for member in stay),
        actions.Wait(duration_ms=view.past_session_ms(175)),
    ]


def _race_replication_factor(view: ClusterView) -> Actions:
    """S42: partition 0 is moved to one replica; the ISR of another partition shrinks to one, which loses its log."""
    led = view.draw_led_partition()
    if led is None or led.name.partition == 0 or len(led.state.isr) < 3:
        return []
    name, leader, state = led
    if not view.may_crash(view.cluster.nodes[leader]):
        return []
    others = [replica for replica in state.replicas if replica != leader]
    return [
        actions.Reassign(partition=TopicPartition(name.topic, 0), replicas=(view.schedule.choice(others),)),
        actions.Produce(partition=name, producer=PRODUCER_ALL, records=1),
        actions.Wait(duration_ms=view.schedule.randint(20, 100)),
        *(actions.Cut(link=Link(other, view.controller_id)) for other in others),
        actions.Wait(duration_ms=view.past_session_ms(175)),
        view.draw_power_loss((leader,)),
        *(actions.HealLink(link=Link(other, view.controller_id)) for other in others),
        actions.Wait(duration_ms=view.past_session_ms(175)),
        actions.Start(nodes=(leader,)),
        actions.Wait(duration_ms=view.past_session_ms(175)),
    ]


def _race_term(view: ClusterView) -> Actions:
    """S43: a leader is deposed and elected again, and applies both changes at once; a follower truncates in between."""
    led = view.draw_led_partition()
    if led is None or len(led.state.isr) < 3:
        return []
    name, leader, state = led
    successor, forked = view.schedule.sample([member for member in state.isr if member != leader], 2)
    return [
        actions.Cut(link=Link(successor, leader)),
        actions.Wait(duration_ms=view.schedule.randint(2, 10)),
        actions.Produce(partition=name, producer=PRODUCER_ALL, records=1),
        actions.Wait(duration_ms=view.schedule.randint(10, 30)),
        actions.Cut(link=Link(leader, view.controller_id)),
        _designated(name, successor),
        actions.Wait(duration_ms=view.schedule.randint(20, 60)),
        actions.Cut(link=Link(forked, leader)),
        _designated(name, leader),
        actions.Wait(duration_ms=view.schedule.randint(2, 10)),
        actions.HealLink(link=Link(successor, leader)),
        actions.HealLink(link=Link(leader, view.controller_id)),
        actions.Wait(duration_ms=view.schedule.randint(60, 60 + view.session_ms // 2)),
        _designated(name, forked),
        actions.Wait(duration_ms=view.schedule.randint(50, 150)),
    ]


def _designated(partition: TopicPartition, leader: BrokerId) -> actions.ElectLeaders:
    return actions.ElectLeaders(
        election=admin_messages.RequestedElection.DESIGNATED, partitions=(partition,), leader=leader
    )


def _race_cancel(view: ClusterView) -> Actions:
    """A reassignment is cancelled while only an adding replica is in the ISR and has committed records alone."""
    led = view.draw_led_partition()
    if led is None or len(view.brokers) < 4:
        return []
    name, leader, replicas = led.name, led.leader, led.state.replicas
    others = [replica for replica in replicas if replica != leader]
    spare = [node.broker_id for node in view.brokers if node.broker_id not in replicas]
    added = view.schedule.choice(spare or others)
    late = view.schedule.choice([node.broker_id for node in view.brokers if node.broker_id not in (added, leader)])
    return [
        min_isr(name.topic, 1),
        *(actions.Cut(link=Link(late, each)) for each in (leader, added)),
        actions.Reassign(partition=name, replicas=(added, late)),
        actions.Wait(duration_ms=view.schedule.randint(200, 400)),
        *(actions.Cut(link=Link(other, view.controller_id)) for other in others if other != added),
        actions.Wait(duration_ms=view.past_session_ms(150)),
        actions.Pause(nodes=(leader,)),
        actions.Wait(duration_ms=view.past_session_ms(150)),
        actions.Cut(link=Link(leader, added)),
        actions.Produce(partition=name, producer=PRODUCER_ALL, records=1),
        actions.Wait(duration_ms=view.schedule.randint(350, 450)),  # the client finds the next leader
        actions.CancelReassignment(partition=name),
        actions.Wait(duration_ms=view.schedule.randint(5, 40)),
        actions.Resume(nodes=(leader,)),
        actions.Wait(duration_ms=view.past_session_ms(175)),
    ]


def _race_downgrade(view: ClusterView) -> Actions:
    """S40: the ELR feature is downgraded while a partition waits for ELR members, one of which returns empty."""
    led = view.draw_led_partition()
    if led is None or len(led.state.isr) < 2 or set(led.state.isr) != set(led.state.replicas):
        return []
    name, leader, state = led
    others = [replica for replica in state.replicas if replica != leader]
    victim = view.schedule.choice(others)
    if not view.may_crash(view.cluster.nodes[victim]):
        return []
    fenced = [replica for replica in others if replica != victim] + [victim, leader]
    return [
        actions.Produce(partition=name, producer=PRODUCER_ALL, records=1),
        actions.Wait(duration_ms=view.schedule.randint(20, 60)),
        *(
            action
            for replica in fenced
            for action in (
                actions.Cut(link=Link(replica, view.controller_id)),
                actions.Wait(duration_ms=view.past_session_ms(150)),
            )
        ),
        view.draw_power_loss((victim,)),
        actions.Reset(link=Link(victim, view.controller_id)),  # or its last heartbeat arrives after all
        elr_feature(0),
        actions.Wait(duration_ms=view.schedule.randint(5, 20)),
        actions.HealLink(link=Link(victim, view.controller_id)),
        actions.Start(nodes=(victim,)),
        actions.Wait(duration_ms=view.past_session_ms(175)),
        *(actions.HealLink(link=Link(replica, view.controller_id)) for replica in (leader, *others)),
        actions.Wait(duration_ms=view.schedule.randint(200, 500)),
        elr_feature(1),
        actions.Wait(duration_ms=view.schedule.randint(5, 40)),
    ]


ADMINISTRATOR_MOVES: Final[Mapping[str, Move]] = MappingProxyType(
    {
        "min_isr": _min_isr,
        "reassign": _reassign,
        "recreate": _recreate,
        "race_min_isr": _race_min_isr,
        "race_raised": _race_raised,
        "race_recreate": _race_recreate,
        "race_produce": _race_produce,
        "race_reassign": _race_reassign,
        "race_replication_factor": _race_replication_factor,
        "race_term": _race_term,
        "race_cancel": _race_cancel,
        "race_downgrade": _race_downgrade,
    }
)
"""The administrator moves, by the name that profiles use."""
