"""Healing: links deliver everything again. Connections that were blocked meanwhile are closed, as if reset."""

import asyncio
from collections.abc import Iterable

from laststand.chaos.process.faults.links import PASSES_WITHIN_S, proxies
from laststand.chaos.process.faults.registry import executes
from laststand.chaos.process.target import ProcessTarget
from laststand.emulator.cluster.probe import ProbeOutcome
from laststand.emulator.core.types import NodeId
from laststand.emulator.plan import actions
from laststand.emulator.plan.channels import Link
from laststand.emulator.plan.nouns import counted


@executes(actions.HealAll)
async def heal_all(target: ProcessTarget, _: actions.HealAll) -> actions.Outcome:
    """Heals every link, and leaves all messages alone."""
    ended = await target.messages.end_all()
    healed = actions.no_op("no link was broken")
    if target.cluster.toxiproxy is not None:
        healed = await _restore(target, proxies(target).links)
    if not ended:
        return healed
    left_alone = f"messages of {ended} kinds are left alone"
    return actions.effective(f"{healed.seen}; {left_alone}" if healed.took_effect else left_alone)


@executes(actions.HealNodes)
async def heal_nodes(target: ProcessTarget, action: actions.HealNodes[NodeId]) -> actions.Outcome:
    """Heals every link to and from nodes."""
    return await _restore(
        target, sorted({link for node_id in action.nodes for link in proxies(target).links_of(node_id)})
    )


@executes(actions.HealLink)
async def heal_link(target: ProcessTarget, action: actions.HealLink[NodeId]) -> actions.Outcome:
    """Heals the connections that one node opens to another."""
    return await _restore(target, [action.link])


async def _restore(target: ProcessTarget, links: Iterable[Link[NodeId]]) -> actions.Outcome:
    changed = await proxies(target).restore(links)
    if not changed:
        return actions.no_op("no link was broken")
    # A node that is down or paused does not answer, even behind a healed link.
    answering = [link for link in changed if target.is_answering(link.target)]
    outcomes = await asyncio.gather(*(proxies(target).probe(link, timeout_s=PASSES_WITHIN_S) for link in answering))
    silent = [link for link, outcome in zip(answering, outcomes, strict=True) if outcome is not ProbeOutcome.PASSES]
    if silent:
        return actions.Outcome(
            took_effect=True, affected=False, seen=f"no answer through {', '.join(map(str, silent))}"
        )
    answers = "answers" if len(answering) == 1 else "answer"
    return actions.effective(f"{counted(len(changed), 'link')} restored, {len(answering)} of them {answers}")
