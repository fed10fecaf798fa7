"""Moves on processes: brokers and the controller are killed, lose power, stop, pause, and have clocks that drift.

Within the guarantee, a broker ends uncleanly only where ``ClusterView.may_crash`` allows it. The controller may always
end; the move that ends it starts it again.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from laststand.emulator.core.types import NodeId
from laststand.emulator.plan import actions
from laststand.emulator.plan.fields import PRODUCER_ALL
from laststand.emulator.simulator.moves.cluster_view import Actions, ClusterView, Move


def _kill(view: ClusterView) -> Actions:
    victim = view.draw_victim()
    return [] if victim is None else [actions.Kill(nodes=(victim.node_id,))]


def _power_loss(view: ClusterView) -> Actions:
    victim = view.draw_victim()
    return [] if victim is None else [view.draw_power_loss((victim.node_id,))]


def _bounce(view: ClusterView) -> Actions:
    """A crash, an immediate restart, and a wait that suffices to register."""
    victim = view.draw_victim()
    if victim is None:
        return []
    crash: actions.Action = view.draw_power_loss((victim.node_id,))
    if view.storage.random() < 0.2:
        crash = actions.Kill(nodes=(victim.node_id,))
    start = actions.Start(nodes=(victim.node_id,))
    return [crash, start, actions.Wait(duration_ms=view.past_session_ms(175))]


def _crash_within(view: ClusterView) -> Actions:
    """A crash within a turn: one that appends, one that changes roles, one after a restart, or any."""
    victim = view.draw_victim()
    if victim is None or victim.pending_crash is not None:
        return []
    node = victim.node_id
    loss = view.draw_loss((node,)) if view.storage.random() < 0.6 else None
    crash = actions.CrashWithin(nodes=(node,), after_effects=view.storage.choice((1, 1, 2, 3)), loss=loss)
    start = actions.Start(nodes=(node,))
    after: Actions = [
        actions.Wait(duration_ms=view.schedule.choice((60, 150, 300))),
        start,
        actions.Wait(duration_ms=view.schedule.randint(0, view.session_ms * 7 // 4)),
    ]
    match view.schedule.choice(("produce", "produce", "turn", "restart", "any")):
        case "produce":
            produce = actions.Produce(
                partition=view.draw_partition(), producer=PRODUCER_ALL, records=view.workload.randint(1, 3)
            )
            return [crash, produce, *after]
        case "turn":
            led = view.draw_led_partition()
            deposed = () if led is None else (actions.Expire(nodes=(led.leader,)),)
            return [crash, *deposed, *after]
        case "restart":
            end: actions.Action = (
                actions.Kill(nodes=(node,)) if loss is None else actions.PowerLoss(nodes=(node,), loss=loss)
            )
            return [end, start, actions.Wait(duration_ms=view.schedule.choice((0, 1, 2, 4, 10, 40))), crash, *after]
        case _:
            return [crash, *after]


def _replace_disk(view: ClusterView) -> Actions:
    victim = view.draw_victim()
    return [] if victim is None else [actions.ReplaceDisk(nodes=(victim.node_id,))]


def _stop(view: ClusterView) -> Actions:
    running = view.running
    return [actions.Stop(nodes=(view.schedule.choice(running).node_id,))] if running else []


def _all(view: ClusterView) -> tuple[NodeId, ...]:
    return tuple(node.node_id for node in view.brokers)


def _power_loss_all(view: ClusterView) -> Actions:
    nodes = _all(view)
    return [
        view.draw_power_loss(nodes),
        *(actions.Start(nodes=(node,)) for node in view.schedule.sample(nodes, len(nodes))),
        actions.Wait(duration_ms=view.schedule.randint(view.session_ms * 3 // 4, view.session_ms * 7 // 4)),
    ]


def _kill_all(view: ClusterView) -> Actions:
    return [actions.Kill(nodes=_all(view)), actions.Start(nodes=_all(view))]


def _sync(view: ClusterView) -> Actions:
    return [actions.SyncDisk(nodes=(view.storage.choice(view.brokers).node_id,))]


def _pause(view: ClusterView) -> Actions:
    running = [node for node in view.running if not node.is_paused]
    return [actions.Pause(nodes=(view.schedule.choice(running).node_id,))] if running else []


def _resume(view: ClusterView) -> Actions:
    paused = [node.node_id for node in view.brokers if node.is_paused]
    paused += [node.node_id for node in view.cluster.metadata_nodes.values() if node.is_paused]
    return [actions.Resume(nodes=(view.schedule.choice(paused),))] if paused else []


def _clock(view: ClusterView) -> Actions:
    rate = view.schedule.choice((700_000, 950_000, 1_000_000, 1_050_000, 1_400_000))
    return [actions.ClockRate(nodes=(view.schedule.choice(view.brokers).node_id,), rate_ppm=rate)]


def _expire(view: ClusterView) -> Actions:
    running = view.running
    return [actions.Expire(nodes=(view.schedule.choice(running).node_id,))] if running else []


def _depose(view: ClusterView) -> Actions:
    led = view.draw_led_partition()
    if led is None:
        return []
    return [actions.Expire(nodes=(led.leader,))]


def _on_controller(view: ClusterView, crash: actions.Action) -> Actions:
    if view.cluster.metadata_node.core is None:
        return []
    start = actions.Start(nodes=(view.controller_id,))
    return [crash, actions.Wait(duration_ms=view.schedule.choice((1, 20, 200, 500))), start]


def _draw(view: ClusterView) -> Actions:
    return [actions.Draw(number=view.schedule.randrange(len(view.brokers)))]


def _kill_controller(view: ClusterView) -> Actions:
    return _on_controller(view, actions.Kill(nodes=(view.controller_id,)))


def _power_loss_controller(view: ClusterView) -> Actions:
    return _on_controller(view, view.draw_power_loss((view.controller_id,)))


def _pause_controller(view: ClusterView) -> Actions:
    return [actions.Pause(nodes=(view.controller_id,))]


PROCESS_MOVES: Final[Mapping[str, Move]] = MappingProxyType(
    {
        "kill": _kill,
        "power_loss": _power_loss,
        "bounce": _bounce,
        "crash_within": _crash_within,
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
"""The process moves, by the name that profiles use."""
