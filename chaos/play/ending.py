"""Ends a run, on every driver: heal every fault, wait until the cluster has settled, and record it."""

from collections.abc import Iterable
from typing import Final

from laststand.chaos.play.barriers import Observation, describe_partition
from laststand.chaos.play.target import Target
from laststand.chaos.play.waiting import StepError
from laststand.emulator.core import admin_messages, events
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.types import MetadataOffset, NodeId
from laststand.emulator.plan import actions

SETTLE_TIMEOUT_S: Final = 45.0
"""For leaders and full ISRs after everything was restored."""

_LOOK_MS: Final = 50
_LOOKS: Final = 600
"""Half a minute: a broker reports with each heartbeat what it has applied."""

_TRIES: Final = 10
"""Each ends with a broker that is fenced, at most one for each that was killed."""


async def restore_and_settle(target: Target, node_ids: Iterable[NodeId], *, more: Iterable[actions.Action]) -> None:
    """Heals every fault, and waits for leaders and full ISRs.

    Args:
        target: the cluster.
        node_ids: the nodes; paused ones are resumed, stopped ones that ran before are started.
        more: other repairs to make.

    Raises:
        StepError: the cluster did not settle in time.
        EmulatorError: a node did not become ready, or a link could not be mended.
    """
    # A node whose disk is full cannot be started before there is room.
    for action in sorted(
        [*repairs(target, node_ids), *more], key=lambda action: not isinstance(action, actions.DiskFull)
    ):
        await target.perform(action)
    for _ in range(_TRIES):
        seen_end = await _settled_end(target)
        if await _have_caught_up(target, seen_end):
            # The end that was observed, not the newest committed one: the state may have changed again.
            target.note(events.ClusterSettled(cause_id=target.cause_id, metadata_offset=seen_end))
            return
    raise StepError("brokers are fenced again and again")


async def _settled_end(target: Target) -> MetadataOffset:
    """Waits for leaders and full ISRs; returns the end of the metadata that has them."""
    committed = await target.committed_end()
    seen_end = target.image.next_offset

    def observed() -> Observation:
        nonlocal seen_end
        seen_end = target.image.next_offset
        if seen_end < committed:
            return Observation(reached=False, text=f"metadata is known up to {seen_end} of {committed}")
        return settled(target.image)

    await target.wait(observed, timeout_s=SETTLE_TIMEOUT_S)
    return seen_end


async def _have_caught_up(target: Target, end_offset: MetadataOffset) -> bool:
    """Waits until every broker has reported that it applied the metadata up to an offset.

    Returns:
        False if a broker was fenced first: it may have been killed and started again while the controller took it for
        alive, because its session had not ended.
    """
    for _ in range(_LOOKS):
        described = await target.ask_controller(admin_messages.DescribeClusterRequest())
        assert isinstance(described, admin_messages.DescribeClusterResponse)
        if any(each.is_fenced for each in described.brokers):
            return False
        behind = [each for each in described.brokers if (each.applied_offset or 0) < end_offset - 1]
        if not behind:
            return True
        await target.pause(duration_ms=_LOOK_MS)
    brokers = ", ".join(f"{each.broker_id} (up to {each.applied_offset})" for each in behind)
    raise StepError(f"brokers do not get metadata up to {end_offset - 1}: {brokers}")


def repairs(target: Target, node_ids: Iterable[NodeId]) -> Iterable[actions.Action]:
    """Yields the actions that heal links and restart processes."""
    if target.has_broken_links:
        yield actions.HealAll()
    for machine in dict.fromkeys(target.together(node_id) for node_id in node_ids):
        if target.is_paused(machine[0]):
            yield actions.Resume(nodes=machine)
        elif not target.is_running(machine[0]) and not target.is_awaited(machine[0]):
            yield actions.Start(nodes=machine)


def settled(image: MetadataImage) -> Observation:
    """Returns whether every partition has a leader and its full ISR, or an excuse, and every broker is unfenced."""
    unsettled = []
    for partition, state in sorted(image.partitions.items()):
        # Where no replica may be elected, KIP-966 leaves the choice to an administrator: that is the listed excuse.
        is_excused = state.leader is None and not state.isr and not state.elr
        is_full = state.leader is not None and set(state.isr) == set(state.replicas)
        if not is_full and not is_excused:
            unsettled.append(f"{partition} {describe_partition(state)}")
    fenced = sorted(broker for broker, registration in image.brokers.items() if registration.fenced)
    if fenced:
        unsettled.append(f"brokers {fenced} are fenced")
    return Observation(reached=not unsettled, text="; ".join(unsettled) or "leaders and full ISRs")
