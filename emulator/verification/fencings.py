"""Fencings that no fault explains.

A broker whose session expired without cause shows that the machine stalled, not that the protocol works: such a run
proves nothing. A fencing of broker b, committed at metadata offset m, is explained by

- the end of the fenced incarnation (found by its broker epoch) at or before m;
- a fault injected before m on b, on a controller, or on a link between the two, whatever the fault is. A healed fault
  explains nothing more once b was unfenced again after the heal.

Faults carry the metadata offset that was committed when they were injected and healed. Where the harness did not know
it, the nearest one that it noted in its own file bounds it: the last before an injection, the next after a heal. So it
is where a controller's own disk was held up when a fault was healed: what it had decided by then is committed later.
"""

import re
from typing import Final

import msgspec

from emulator.core.events import (
    BrokerFenced,
    BrokerRegistered,
    BrokerUnfenced,
    FaultHealed,
    FaultInjected,
    IncarnationEnded,
)
from emulator.verification.timeline import Timeline

CONTROLLER_ID_MIN: Final = 100
"""Node ids from here on are controllers'."""

_NODE_ID: Final = re.compile(r"\d+")
_LINK: Final = "->"
"""In a target that is a link."""


class _Fault(msgspec.Struct, kw_only=True):
    name: str
    target: str
    nodes: frozenset[int]
    injected: int
    healed: int | None = None


def unexplained_fencings(timeline: Timeline) -> tuple[str, ...]:
    """Returns a sentence for each fencing by session expiry that nothing explains."""
    faults = _faults(timeline)
    ends = {(end.ended_node, end.ended_incarnation): end for end in timeline.of(IncarnationEnded)}
    incarnations = {
        registered.broker_epoch: timeline.incarnation_of(registered.incarnation_id)
        for registered in timeline.of(BrokerRegistered)
    }
    sentences = []
    for fenced in timeline.of(BrokerFenced):
        if fenced.reason != "session_expired":
            continue
        incarnation = incarnations.get(fenced.broker_epoch)
        end = None if incarnation is None else ends.get((fenced.broker_id, incarnation))
        if end is not None and (end.metadata_offset is None or end.metadata_offset <= fenced.metadata_offset):
            continue
        if not any(_explains(fault, fenced, timeline) for fault in faults):
            sentences.append(
                f"broker {fenced.broker_id} was fenced at metadata offset {fenced.metadata_offset} "
                "because its session expired, and no fault explains that"
            )
    return tuple(sentences)


def _faults(timeline: Timeline) -> list[_Fault]:
    faults: list[_Fault] = []
    known = 0
    waiting: list[_Fault] = []  # healed, at an offset that the next known one bounds
    for collected in timeline.events:
        match collected.event:
            case FaultInjected() as injected:
                known = max(known, injected.metadata_offset or 0)
                nodes = frozenset(int(word) for word in _NODE_ID.findall(injected.target))
                faults.append(_Fault(name=injected.fault, target=injected.target, nodes=nodes, injected=known))
            case FaultHealed() as healed:
                lasting = [fault for fault in faults if fault.healed is None]
                mended = [fault for fault in lasting if _mends(healed, fault)]
                if healed.metadata_offset is None or any(_holds_up_commits(fault) for fault in lasting):
                    waiting.extend(mended)
                else:
                    for fault in mended:
                        fault.healed = healed.metadata_offset
            case IncarnationEnded(metadata_offset=int() as offset):
                known = max(known, offset)
                for fault in waiting:
                    fault.healed = offset
                waiting.clear()
            case _:
                pass
    return faults


def _mends(healed: FaultHealed, fault: _Fault) -> bool:
    return healed.target in ("all", fault.target) and healed.fault in ("all", "heal", fault.name)


def _holds_up_commits(fault: _Fault) -> bool:
    return fault.target in {f"{node}{_LINK}{node}" for node in fault.nodes if node >= CONTROLLER_ID_MIN}


def _explains(fault: _Fault, fenced: BrokerFenced, timeline: Timeline) -> bool:
    concerned = fault.nodes & {fenced.broker_id} or {node for node in fault.nodes if node >= CONTROLLER_ID_MIN}
    if _LINK in fault.target:  # A link matters only if heartbeats pass it.
        concerned = (
            fault.nodes if fenced.broker_id in fault.nodes and max(fault.nodes) >= CONTROLLER_ID_MIN else frozenset()
        )
    if not concerned or fenced.metadata_offset < fault.injected:
        return False
    if fault.healed is None:
        return True
    return not any(
        fault.healed <= unfenced.metadata_offset < fenced.metadata_offset
        for unfenced in timeline.of(BrokerUnfenced)
        if unfenced.broker_id == fenced.broker_id
    )
