"""Expiry: no message of a broker reaches the controller until its session is over; its metadata waits, too."""

from laststand.chaos.play.barriers import Observation
from laststand.chaos.process.faults.links import break_links, proxies
from laststand.chaos.process.faults.registry import executes
from laststand.chaos.process.target import ProcessTarget
from laststand.emulator.core.types import BrokerId, NodeId
from laststand.emulator.plan import actions
from laststand.emulator.plan.channels import Link

_SESSIONS: float = 3.0
"""A session is over after this many of its timeouts, however busy the machine is."""


@executes(actions.Expire)
async def expire(target: ProcessTarget, action: actions.Expire[NodeId]) -> actions.Outcome:
    """Cuts brokers off from the controller until it has fenced them.

    Raises:
        StepError: a broker was not fenced.
    """
    controllers = target.cluster.layout.controller_ids
    links = [Link(node_id, controller) for node_id in action.nodes for controller in controllers]
    broken = await break_links(target, links, proxies(target).cut)

    def fenced() -> Observation:
        registrations = {node_id: target.image.brokers.get(BrokerId(node_id)) for node_id in action.nodes}
        active = [node_id for node_id, each in registrations.items() if each is not None and not each.fenced]
        return Observation(reached=not active, text=f"brokers {active} are not fenced")

    try:
        await target.wait(fenced, timeout_s=_SESSIONS * target.session_timeout_ms / 1000)
    finally:
        await proxies(target).restore(links)
    return actions.effective("fenced") if broken.affected else broken
