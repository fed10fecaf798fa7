"""The plan's faults as rows, each with its targets, its begin and its end.

The harness writes a line per target. Consecutive lines of one fault count as one action.
"""

from collections.abc import Iterator

import msgspec

from laststand.emulator.analysis.run_source import RunSource
from laststand.emulator.analysis.schema import Nanoseconds
from laststand.emulator.analysis.tables import FaultRow
from laststand.emulator.core.events import FaultHealed, FaultInjected
from laststand.emulator.core.types import NodeId
from laststand.emulator.plan.nodes import is_client
from laststand.emulator.verification.facts.cluster import begun_ns
from laststand.emulator.verification.tables.timeline import CollectedEvent


class _Target(msgspec.Struct, kw_only=True):
    injected: CollectedEvent[FaultInjected]
    healed: CollectedEvent[FaultHealed] | None = None


def fault_rows(source: RunSource) -> Iterator[tuple[Nanoseconds, FaultRow]]:
    """Yields every fault, in the order in which they began, with the time of its begin."""
    actions: list[list[_Target]] = []
    for collected in _fault_events(source):
        match collected.event:
            case FaultInjected():
                target = _Target(injected=collected)
                if actions and _are_one_action(actions[-1][-1].injected, collected):
                    actions[-1].append(target)
                else:
                    actions.append([target])
            case FaultHealed():
                for target in (each for action in actions for each in action if each.healed is None):
                    if collected.event.mends(target.injected.event):
                        target.healed = collected
            case _:
                pass
    for action in actions:
        begin_ns = Nanoseconds(begun_ns(action[0].injected))
        yield begin_ns, _row(action, begin_ns, source)


def _fault_events(source: RunSource) -> list[CollectedEvent[FaultInjected] | CollectedEvent[FaultHealed]]:
    events = source.evidence.facts.cluster.events
    found: list[CollectedEvent[FaultInjected] | CollectedEvent[FaultHealed]] = []
    found.extend(events.of(FaultInjected))
    found.extend(events.of(FaultHealed))
    return sorted(found, key=lambda each: (each.incarnation, each.sequence))


def _are_one_action(earlier: CollectedEvent[FaultInjected], later: CollectedEvent[FaultInjected]) -> bool:
    return (
        (later.incarnation, later.sequence) == (earlier.incarnation, earlier.sequence + 1)
        and later.event.fault == earlier.event.fault
        and later.event.cause_id == earlier.event.cause_id
    )


def _proved_ns(injected: CollectedEvent[FaultInjected]) -> int:
    proved_ns = injected.event.proved_ns
    return injected.time_ns if proved_ns is None else proved_ns


def _nodes(injected: FaultInjected) -> Iterator[NodeId]:
    """Yields the nodes that a fault targets, and the nodes at the ends of its links."""
    yield from injected.nodes
    for link in injected.links:
        yield from (node for node in (link.source, link.target) if not is_client(node))


def _row(action: list[_Target], begin_ns: Nanoseconds, source: RunSource) -> FaultRow:
    first = action[0].injected
    ends = [target.healed for target in action if target.healed is not None]
    last = max(ends, key=lambda healed: healed.time_ns) if len(ends) == len(action) else None
    nodes = {node for target in action for node in _nodes(target.injected.event)}
    effects = [target.injected.event.effect for target in action if target.injected.event.effect is not None]
    return FaultRow(
        fault=first.event.fault,
        targets=tuple(target.injected.event.target for target in action),
        nodes=tuple(sorted(nodes)),
        effect_s=source.clock.seconds(_proved_ns(action[-1].injected)) if effects else None,
        end_s=None if last is None else source.clock.seconds(last.time_ns),
        duration_s=None if last is None else source.clock.span(begin_ns, last.time_ns),
        had_effect=bool(effects),
        effect=effects[0] if effects else None,
        metadata_offset=first.event.metadata_offset,
        healed_metadata_offset=None if last is None else last.event.metadata_offset,
    )
