"""Races beyond the guarantee: they test which records the rules for unclean elections save.

Each brings a partition to an unclean election in which the rule decides whether an acknowledged record survives. The
number that each begins with is its row in docs/failures.md.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from laststand.emulator.core import admin_messages
from laststand.emulator.core.disk import ExactLoss, Keep, NamesFate, TruncationFate
from laststand.emulator.core.types import NodeId
from laststand.emulator.plan import actions
from laststand.emulator.plan.channels import Link
from laststand.emulator.plan.fields import PRODUCER_ALL, PRODUCER_LEADER
from laststand.emulator.plan.lines import min_isr
from laststand.emulator.plan.power import DiskLoss
from laststand.emulator.simulator.moves.cluster_view import Actions, ClusterView, Move

NOTHING_KEPT: Final = DiskLoss(
    keep=Keep.NONE, exact=ExactLoss(kept=0, truncation=TruncationFate.KEPT, names=NamesFate.KEPT)
)
"""A loss of power that takes every batch that was not synced."""


def _race_pick(view: ClusterView) -> Actions:
    """S34: two replicas may be elected uncleanly: the preferred one is empty, the other has all records."""
    led = view.draw_led_partition()
    if led is None or len(led.state.replicas) < 3:
        return []
    name, leader, state = led
    empty, full = [replica for replica in state.replicas if replica != leader][:2]
    return [
        min_isr(name.topic, 1),
        actions.Cut(link=Link(empty, leader)),
        actions.Cut(link=Link(full, view.controller_id)),
        actions.Produce(partition=name, producer=PRODUCER_LEADER, records=1),
        actions.Wait(duration_ms=max(view.past_session_ms(), view.past_lag_ms())),
        actions.Produce(partition=name, producer=PRODUCER_ALL, records=1),
        actions.Wait(duration_ms=view.schedule.randint(20, 60)),
        actions.Draw(number=1),
        actions.Kill(nodes=(leader,)),
        actions.HealLink(link=Link(full, view.controller_id)),
        actions.Wait(duration_ms=view.past_session_ms(160)),
    ]


def _race_recovering(view: ClusterView) -> Actions:
    """S23: a leader that was elected uncleanly gets requests before it has recovered, and is replaced uncleanly."""
    led = view.draw_led_partition()
    if led is None or len(led.state.replicas) < 3:
        return []
    name, leader, state = led
    second, third = [replica for replica in state.replicas if replica != leader][:2]
    return [
        min_isr(name.topic, 1),
        actions.Cut(link=Link(second, view.controller_id)),
        actions.Cut(link=Link(third, view.controller_id)),
        actions.Cut(link=Link(third, second)),
        actions.Wait(duration_ms=view.past_session_ms(160)),
        actions.Kill(nodes=(leader,)),
        actions.HealLink(link=Link(second, view.controller_id)),
        actions.Wait(duration_ms=view.past_session_ms(160)),
        actions.Produce(partition=name, producer=PRODUCER_ALL, records=1),
        actions.Wait(duration_ms=view.schedule.randint(20, 60)),
        actions.Cut(link=Link(second, view.controller_id)),
        actions.HealLink(link=Link(third, view.controller_id)),
        actions.Wait(duration_ms=view.past_session_ms(160)),
    ]


def _race_last_known(view: ClusterView) -> Actions:
    """S33: all candidates lose power; the only one with a synced record restarts, fails, and returns late."""
    led = view.draw_led_partition()
    if led is None or len(led.state.isr) < 2:
        return []
    name, leader, state = led
    keeper = view.storage.choice([member for member in state.isr if member != leader])
    everybody = tuple(NodeId(replica) for replica in state.replicas)
    recovery_ms = view.cluster.properties.unclean_recovery_timeout_ms
    everybody_else = tuple(node for node in everybody if node != keeper)
    return [
        actions.Produce(partition=name, producer=PRODUCER_ALL, records=1),
        actions.Wait(duration_ms=view.schedule.randint(20, 60)),
        actions.SyncDisk(nodes=(keeper,)),
        actions.PowerLoss(nodes=everybody, loss=NOTHING_KEPT),
        actions.Start(nodes=(keeper,)),
        actions.Wait(duration_ms=view.past_session_ms(160)),
        actions.Kill(nodes=(keeper,)),
        actions.Start(nodes=everybody_else),
        actions.Wait(
            duration_ms=view.schedule.randint(view.session_ms + recovery_ms, 2 * view.session_ms + 2 * recovery_ms)
        ),
        actions.Start(nodes=(keeper,)),
        actions.Wait(duration_ms=view.past_session_ms(160)),
    ]


def _race_deleted(view: ClusterView) -> Actions:
    """S50: all records of a leader are deleted, it stops, and others are acknowledged in their place before it is back.

    The lost records were acknowledged after the unclean election, and no replica failed since: the guarantee covers
    them.
    """
    led = view.draw_led_partition()
    if led is None or len(led.state.replicas) < 3:
        return []
    name, leader, state = led
    successor, *others = view.network.sample([replica for replica in state.replicas if replica != leader], 2)
    records = view.workload.randint(1, 3)
    past_return = actions.Wait(duration_ms=view.past_session_ms(200) + view.past_return_ms())
    return [
        min_isr(name.topic, 1),
        actions.Stop(nodes=(successor, *others)),
        past_return,
        actions.Produce(partition=name, producer=PRODUCER_LEADER, records=records),
        actions.Wait(duration_ms=view.schedule.randint(5, 40)),
        actions.DeleteRecords(partition=name, offset=None),
        actions.Cut(link=Link(successor, leader)),
        actions.Start(nodes=(successor,)),
        past_return,
        actions.Stop(nodes=(leader,)),
        past_return,
        actions.ElectLeaders(election=admin_messages.RequestedElection.UNCLEAN, partitions=(name,)),
        actions.Start(nodes=tuple(others)),
        past_return,
        min_isr(name.topic, 2),
        *(actions.Produce(partition=name, producer=PRODUCER_ALL, records=1) for _ in range(records)),
        past_return,
        actions.HealLink(link=Link(successor, leader)),
        actions.Start(nodes=(leader,)),
        past_return,
        actions.ElectLeaders(election=admin_messages.RequestedElection.DESIGNATED, partitions=(name,), leader=leader),
        past_return,
    ]


UNCLEAN_RACES: Final[Mapping[str, Move]] = MappingProxyType(
    {
        "race_pick": _race_pick,
        "race_recovering": _race_recovering,
        "race_last_known": _race_last_known,
        "race_deleted": _race_deleted,
    }
)
"""The races for unclean elections, by the name that profiles use."""
