"""Fencings that no fault explains.

A broker whose session expired without cause shows that the machine stalled, not that the protocol works: such a run
proves nothing. A fencing of broker b, committed at metadata offset m, is explained by

- the end of the fenced incarnation (found by its broker epoch) at or before m;
- a fault injected before m on b, on a controller, or on a link between the two, whatever the fault is. A healed fault
  explains nothing more once b was unfenced again after the heal.

Faults carry the metadata offset that was committed when they were injected and healed. Where the harness did not know
that offset, the nearest one in its own file is used: the last before an injection, the next after a heal. The next one
is also used where a controller's disk was blocked when a fault was healed: earlier decisions are then committed later.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from laststand.emulator.core import events
from laststand.emulator.verification.doubts.doubt import Doubt
from laststand.emulator.verification.tables.timeline import Timeline

CONTROLLER_IDS: Final = range(100, 1000)
"""Node ids of controllers; the clients are node 1000."""


class _Fault(msgspec.Struct, kw_only=True):
    event: events.FaultInjected
    nodes: frozenset[int]
    is_link: bool
    injected: int
    healed: int | None = None


def unexplained_fencings(timeline: Timeline) -> Iterator[Doubt]:
    """Yields a doubt for each fencing by session expiry without an explanation."""
    faults = _faults(timeline)
    ends = {(end.ended_node, end.ended_incarnation): end for end in timeline.of(events.IncarnationEnded)}
    incarnations = {
        registered.broker_epoch: timeline.incarnation_of(registered.incarnation_id)
        for registered in timeline.of(events.BrokerRegistered)
    }
    for fenced in timeline.of(events.BrokerFenced):
        if fenced.reason != "session_expired":
            continue
        incarnation = incarnations.get(fenced.broker_epoch)
        end = None if incarnation is None else ends.get((fenced.broker_id, incarnation))
        if end is not None and (end.metadata_offset is None or end.metadata_offset <= fenced.metadata_offset):
            continue
        if not any(_explains(fault, fenced, timeline) for fault in faults):
            yield Doubt(
                about=None,
                sentence=f"broker {fenced.broker_id} was fenced at metadata offset {fenced.metadata_offset} "
                "because its session expired, and no fault explains that",
                node=fenced.broker_id,
                metadata_offset=fenced.metadata_offset,
            )


def _faults(timeline: Timeline) -> list[_Fault]:
    faults: list[_Fault] = []
    known = 0
    waiting: list[_Fault] = []  # healed, at most at the next known offset
    for collected in timeline.events:
        match collected.event:
            case events.FaultInjected() as injected:
                begun = known if injected.metadata_offset is None else injected.metadata_offset
                known = max(known, begun)
                ends = (node for link in injected.links for node in (link.source, link.target))
                fault = _Fault(
                    event=injected,
                    nodes=frozenset((*injected.nodes, *ends)),
                    is_link=bool(injected.links),
                    injected=begun,
                )
                faults.append(fault)
            case events.FaultHealed() as healed:
                lasting = [fault for fault in faults if fault.healed is None]
                mended = [fault for fault in lasting if healed.mends(fault.event)]
                if healed.metadata_offset is None or any(_holds_up_commits(fault) for fault in lasting):
                    waiting.extend(mended)
                else:
                    for fault in mended:
                        fault.healed = healed.metadata_offset
            case events.IncarnationEnded(metadata_offset=int() as offset):
                known = max(known, offset)
                for fault in waiting:
                    fault.healed = offset
                waiting.clear()
            case _:
                pass
    return faults


def _holds_up_commits(fault: _Fault) -> bool:
    """Returns whether the fault is of a controller's link to its own disk, so that it delays commits."""
    return fault.is_link and len(fault.nodes) == 1 and bool(_controllers(fault))


def _controllers(fault: _Fault) -> frozenset[int]:
    return frozenset(node for node in fault.nodes if node in CONTROLLER_IDS)


def _explains(fault: _Fault, fenced: events.BrokerFenced, timeline: Timeline) -> bool:
    concerned = fault.nodes & {fenced.broker_id} or _controllers(fault)
    if fault.is_link:  # A link matters only if heartbeats pass it.
        concerned = fault.nodes if fenced.broker_id in fault.nodes and _controllers(fault) else frozenset()
    if not concerned or fenced.metadata_offset < fault.injected:
        return False
    if fault.healed is None:
        return True
    return not any(
        fault.healed <= unfenced.metadata_offset < fenced.metadata_offset
        for unfenced in timeline.of(events.BrokerUnfenced)
        if unfenced.broker_id == fenced.broker_id
    )
