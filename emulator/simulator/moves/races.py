"""Races: known failures of replication, step by step, with random times and details.

Random moves rarely produce that many steps in order. The number at the start of each is its row in docs/failures.md,
which names the switch that makes it lose records. Races that need an administrator are in ``administrators``.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from laststand.emulator.core.types import Way
from laststand.emulator.plan import actions
from laststand.emulator.plan.channels import STREAM, Channel, Link
from laststand.emulator.plan.fields import PRODUCER_ALL, PRODUCER_LEADER
from laststand.emulator.plan.nodes import CLIENT
from laststand.emulator.simulator.moves.cluster_view import Actions, ClusterView, Move


def _race_shrink(view: ClusterView) -> Actions:
    """S09: an AlterPartition that drops one follower is in flight while another leaves the ISR and returns, behind."""
    led = view.draw_led_partition()
    if led is None or len(led.state.isr) < 3:
        return []
    name, leader, state = led
    dropped, returning = view.network.sample([member for member in state.isr if member != leader], 2)
    proposals = Channel(leader, view.controller_id, "AlterPartition", Way.REQUEST)
    heartbeats = Channel(returning, view.controller_id, "BrokerHeartbeat", Way.REQUEST)
    return [
        actions.Hold(channel=proposals),
        actions.Cut(link=Link(dropped, leader)),
        actions.Produce(partition=name, producer=PRODUCER_LEADER, records=1),
        actions.Wait(duration_ms=view.past_lag_ms()),
        actions.HealLink(link=Link(dropped, leader)),
        actions.Wait(duration_ms=view.schedule.randint(20, 60)),
        actions.Hold(channel=heartbeats),
        actions.Wait(duration_ms=view.past_session_ms()),
        actions.Cut(link=Link(returning, leader)),
        actions.Produce(partition=name, producer=PRODUCER_ALL, records=1),
        actions.Wait(duration_ms=view.schedule.randint(5, 120)),
        actions.Release(channel=heartbeats),
        actions.Wait(duration_ms=view.schedule.randint(2, 20)),
        actions.Release(channel=proposals),
        actions.Wait(duration_ms=view.schedule.randint(2, 20)),
    ]


def _race_expand(view: ClusterView) -> Actions:
    """S10: an AlterPartition that adds a follower is in flight while that follower loses its log and restarts."""
    led = view.draw_led_partition()
    if led is None:
        return []
    name, leader, state = led
    followers = [member for member in state.isr if member != leader and view.may_crash(view.cluster.nodes[member])]
    if not followers:
        return []
    joining = view.network.choice(followers)
    proposals = Channel(leader, view.controller_id, "AlterPartition", Way.REQUEST)
    return [
        actions.Produce(partition=name, producer=PRODUCER_ALL, records=1),
        actions.Expire(nodes=(joining,)),
        actions.Hold(channel=proposals),
        actions.Wait(duration_ms=view.past_return_ms()),
        view.draw_power_loss((joining,)),
        actions.Cut(link=Link(joining, leader)),
        actions.Start(nodes=(joining,)),
        actions.Wait(duration_ms=view.past_session_ms(175)),
        actions.Release(channel=proposals),
        actions.Wait(duration_ms=view.schedule.randint(2, 20)),
    ]


def _race_cut(view: ClusterView) -> Actions:
    """S35: a deposed leader truncates records that it alone had, and loses power before the truncation is synced."""
    led = view.draw_led_partition()
    if led is None or not view.may_crash(view.cluster.nodes[led.leader]):
        return []
    name, leader, state = led
    others = [replica for replica in state.replicas if replica != leader]
    cuts = [actions.Cut(link=Link(other, leader)) for other in others]
    return [
        *cuts,
        actions.Produce(partition=name, producer=PRODUCER_LEADER, records=1),
        actions.Wait(duration_ms=view.schedule.randint(3, 20)),
        actions.SyncDisk(nodes=(leader,)),
        actions.Cut(link=Link(leader, view.controller_id)),
        actions.Wait(duration_ms=view.past_session_ms()),
        actions.Produce(partition=name, producer=PRODUCER_ALL, records=1),
        actions.Wait(duration_ms=view.schedule.randint(350, 450)),  # the client finds the next leader
        actions.HealNodes(nodes=(leader,)),
        actions.Wait(duration_ms=view.schedule.randint(100, 300 + view.session_ms)),
        view.draw_power_loss((leader,)),
        actions.Start(nodes=(leader,)),
        actions.Wait(duration_ms=view.past_session_ms(175)),
    ]


def _race_roles(view: ClusterView) -> Actions:
    """S36: a leader loses the end of its log and restarts within its session; another replica has diverged."""
    led = view.draw_led_partition()
    if led is None or len(led.state.isr) < 3:
        return []
    name, forked, state = led
    successor, other = [replica for replica in state.replicas if replica in state.isr and replica != forked][:2]
    if not view.may_crash(view.cluster.nodes[successor]):
        return []
    append = actions.Produce(partition=name, producer=PRODUCER_ALL, records=1)
    return [
        *(actions.Cut(link=Link(member, forked)) for member in (successor, other)),
        actions.Produce(partition=name, producer=PRODUCER_LEADER, records=view.workload.choice((1, 2))),
        actions.Wait(duration_ms=view.schedule.randint(3, 20)),
        actions.Cut(link=Link(forked, view.controller_id)),
        actions.Wait(duration_ms=view.past_session_ms()),
        actions.Produce(partition=name, producer=PRODUCER_ALL, records=2),
        actions.Wait(duration_ms=view.schedule.randint(350, 900)),  # the client finds the next leader
        actions.SyncDisk(nodes=(successor,)),
        append,
        actions.Wait(duration_ms=view.schedule.randint(20, 40)),
        actions.Expire(nodes=(successor,)),
        actions.Wait(duration_ms=view.schedule.randint(20, 100)),
        actions.Expire(nodes=(other,)),
        actions.Wait(duration_ms=view.schedule.randint(20, 100)),
        append,
        actions.Wait(duration_ms=view.schedule.randint(20, 100)),
        view.draw_power_loss((successor,)),
        actions.Start(nodes=(successor,)),
        actions.Wait(duration_ms=view.schedule.randint(view.session_ms * 7 // 4, view.session_ms * 9 // 4)),
        actions.Expire(nodes=(other,)),
        actions.Wait(duration_ms=view.schedule.randint(20, 100)),
        actions.HealNodes(nodes=(forked,)),
        actions.Wait(duration_ms=view.past_session_ms(175)),
    ]


def _race_readers(view: ClusterView) -> Actions:
    """S22: a follower with records of two lost epochs truncates the upper ones first while a consumer fetches from it.

    An earlier leader sent the consumer there, in a response that is delayed.
    """
    led = view.draw_led_partition()
    if led is None or len(led.state.isr) != 3:
        return []
    name, leader, state = led
    forked, successor = view.schedule.sample([member for member in state.isr if member != leader], 2)
    answers = Channel(CLIENT, leader, "Fetch", Way.RESPONSE)
    append = actions.Produce(partition=name, producer=PRODUCER_LEADER, records=1)
    expires_ms = view.session_ms + view.cluster.properties.replica_lag_time_max_ms
    expires = actions.Wait(duration_ms=view.schedule.randint(expires_ms * 107 // 100, expires_ms * 135 // 100))
    return [
        actions.Hold(channel=answers),
        actions.Wait(duration_ms=view.schedule.randint(2_050, 2_150)),  # consumers ask the leader again where to read
        actions.Cut(link=Link(successor, leader)),
        append,  # reaches the follower, and no other replica
        actions.Wait(duration_ms=view.schedule.randint(5, 20)),
        actions.Pause(nodes=(leader,)),
        actions.Cut(link=Link(forked, view.controller_id)),
        expires,
        append,  # only on the successor
        expires,
        actions.Pause(nodes=(successor,)),
        actions.Cut(link=Link(successor, forked)),
        actions.HealLink(link=Link(forked, view.controller_id)),
        expires,
        append,  # by the follower as leader, after its diverging records
        expires,
        actions.Cut(link=Link(forked, view.controller_id)),
        actions.Resume(nodes=(successor,)),
        expires,
        actions.Resume(nodes=(leader,)),
        actions.Cut(link=Link(forked, successor)),
        actions.HealLink(link=Link(forked, view.controller_id)),
        actions.Wait(duration_ms=view.schedule.randint(2_050, 2_150)),  # all clients know the leader
        actions.Release(channel=answers),
        actions.Wait(duration_ms=view.schedule.randint(2, 20)),
        actions.HealLink(link=Link(forked, successor)),
        actions.Wait(duration_ms=view.schedule.randint(60, 200)),
    ]


def _race_refusal(view: ClusterView) -> Actions:
    """S45: an AlterPartition that adds a follower is in flight; a copy is refused, for the follower is fenced then."""
    led = view.draw_led_partition()
    if led is None or len(led.state.replicas) < 3:
        return []
    name, leader, state = led
    joining = view.network.choice([replica for replica in state.replicas if replica != leader])
    proposals = Channel(leader, view.controller_id, "AlterPartition", Way.REQUEST)
    heartbeats = Channel(joining, view.controller_id, "BrokerHeartbeat", Way.REQUEST)
    return [
        actions.Cut(link=Link(joining, leader)),
        actions.Produce(partition=name, producer=PRODUCER_LEADER, records=1),
        actions.Wait(duration_ms=view.past_lag_ms()),
        actions.Hold(channel=proposals),
        actions.HealLink(link=Link(joining, leader)),
        actions.Wait(duration_ms=view.schedule.randint(20, 60)),
        actions.Hold(channel=heartbeats),
        actions.Wait(duration_ms=view.schedule.randint(view.session_ms * 6 // 5, view.session_ms * 3 // 2)),
        actions.ReleaseNewest(channel=proposals),
        actions.Wait(duration_ms=view.schedule.randint(2, 10)),
        actions.Cut(link=Link(joining, leader)),
        actions.Produce(partition=name, producer=PRODUCER_ALL, records=1),
        actions.Wait(duration_ms=view.schedule.randint(10, 40)),
        actions.Release(channel=heartbeats),
        actions.Wait(duration_ms=view.schedule.randint(5, 40)),
        actions.Release(channel=proposals),
        actions.Wait(duration_ms=view.schedule.randint(2, 20)),
    ]


def _race_proof(view: ClusterView) -> Actions:
    """S46: a member loses its log, the others stop in order, and one of them makes a start that comes to nothing."""
    led = view.draw_led_partition()
    if led is None or len(led.state.isr) < 3:
        return []
    lost = view.storage.choice(led.state.isr)
    others = [member for member in led.state.isr if member != lost]
    if not view.may_crash(view.cluster.nodes[lost]):
        return []
    stream = Channel(others[-1], view.controller_id, STREAM, Way.RESPONSE)
    return [
        actions.Produce(partition=led.name, producer=PRODUCER_ALL, records=1),
        actions.Wait(duration_ms=view.schedule.randint(5, 20)),
        view.storage.choice((actions.ReplaceDisk(nodes=(lost,)), view.draw_power_loss((lost,)))),
        *(action for member in others for action in (actions.Stop(nodes=(member,)), actions.Wait(duration_ms=60))),
        actions.Hold(channel=stream),
        actions.Start(nodes=(others[-1],)),
        actions.Wait(duration_ms=view.past_session_ms()),
        actions.Stop(nodes=(others[-1],)),
        actions.Wait(duration_ms=view.schedule.randint(1, 20)),
        actions.Release(channel=stream),
        actions.Start(nodes=(lost, *others)),
        actions.Wait(duration_ms=view.past_session_ms(175)),
    ]


RACES: Final[Mapping[str, Move]] = MappingProxyType(
    {
        "race_readers": _race_readers,
        "race_shrink": _race_shrink,
        "race_expand": _race_expand,
        "race_cut": _race_cut,
        "race_roles": _race_roles,
        "race_refusal": _race_refusal,
        "race_proof": _race_proof,
    }
)
"""The races, by the name that profiles use."""
