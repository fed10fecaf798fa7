"""Moves that make progress: clients produce, time passes, nodes restart, messages are released, links healed."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from laststand.emulator.plan import actions
from laststand.emulator.plan.fields import PRODUCER_ALL, PRODUCER_LEADER
from laststand.emulator.simulator.moves.cluster_view import Actions, ClusterView, Move
from laststand.emulator.simulator.oracle.promptness import bound_ms, unclean_bound_ms


def _produce(view: ClusterView) -> Actions:
    return [
        actions.Produce(
            partition=view.workload.choice(view.client_partitions),
            producer=PRODUCER_ALL,
            records=view.workload.choice((1, 1, 1, 2, 5)),
        )
        for _ in range(view.workload.choice((1, 1, 2, 4, 6)))
    ]


def _produce_one(view: ClusterView) -> Actions:
    return [
        actions.Produce(
            partition=view.workload.choice(view.client_partitions),
            producer=PRODUCER_LEADER,
            records=view.workload.choice((1, 1, 2)),
        )
    ]


def _step(view: ClusterView) -> Actions:
    return [actions.Wait(duration_ms=view.schedule.randint(1, 4))]


def _pass(view: ClusterView) -> Actions:
    return [actions.Wait(duration_ms=view.schedule.randint(8, 80))]


def _linger(view: ClusterView) -> Actions:
    """Waits about as long as a session timeout or the maximal lag of a follower."""
    usual_ms = view.schedule.choice((view.session_ms, view.cluster.properties.replica_lag_time_max_ms))
    return [actions.Wait(duration_ms=view.schedule.randint(usual_ms * 60 // 100, usual_ms * 150 // 100))]


def _endure(view: ClusterView) -> Actions:
    """Waits, with the faults in force, for the bound of L10 to L13, by which their promises must be kept."""
    produce = actions.Produce(
        partition=view.workload.choice(view.client_partitions), producer=PRODUCER_LEADER, records=1
    )
    properties = view.cluster.properties
    is_at_risk = properties.unclean_recovery_manager_enabled or properties.unclean_leader_election_enable
    overdue_ms = unclean_bound_ms(properties) if is_at_risk else bound_ms(properties)
    return [produce, actions.Wait(duration_ms=overdue_ms + view.schedule.randint(20, 200))]


def _start(view: ClusterView) -> Actions:
    down = [node.node_id for node in view.brokers if node.core is None]
    down += [node.node_id for node in view.cluster.metadata_nodes.values() if node.core is None]
    return [actions.Start(nodes=(view.schedule.choice(down),))] if down else []


def _release(view: ClusterView) -> Actions:
    held = list(view.cluster.network.held)
    return [actions.Release(channel=view.network.choice(held))] if held else []


def _rejoin(view: ClusterView) -> Actions:
    network = view.cluster.network
    broken = sorted({end for link in (*network.cuts, *network.losing) for end in link if end in view.cluster.nodes})
    return [actions.HealNodes(nodes=(view.network.choice(broken),))] if broken else []


def _heal(view: ClusterView) -> Actions:
    return [] if view.cluster.network.is_whole else [actions.HealAll()]


PROGRESS_MOVES: Final[Mapping[str, Move]] = MappingProxyType(
    {
        "produce": _produce,
        "produce_one": _produce_one,
        "step": _step,
        "pass": _pass,
        "linger": _linger,
        "endure": _endure,
        "start": _start,
        "release": _release,
        "rejoin": _rejoin,
        "heal": _heal,
    }
)
"""The moves that make progress, by the name that profiles use."""
