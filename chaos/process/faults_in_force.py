"""The faults that are in force, folded from the harness's own events: what was injected, and not healed since."""

from typing import Final, NamedTuple

from laststand.emulator.core import events
from laststand.emulator.plan import actions
from laststand.emulator.plan.faults import EVERYTHING

_ISOLATE: Final = actions.ACTION_SPECS[actions.Isolate].fault


class FaultInForce(NamedTuple):
    """A fault that was injected and not healed.

    Attributes:
        event: of its injection.
        since_s: when it began, by the monotonic clock.
    """

    event: events.FaultInjected
    since_s: float

    def describe(self, *, now_s: float) -> str:
        """Returns name, target, age and effect in one line."""
        effect = "no effect was seen" if self.event.bit is None else self.event.bit
        return f"{self.event.fault} on {_target(self.event)} for {now_s - self.since_s:.1f} s: {effect}"


class FaultsInForce:
    """The faults of one harness, in the order in which they began."""

    def __init__(self) -> None:
        self._faults: dict[tuple[str, str], FaultInForce] = {}

    def note(self, event: events.Event, *, now_s: float) -> None:
        """Takes an event of the harness into account; ``now_s`` is by the monotonic clock."""
        match event:
            case events.FaultInjected():
                begun_s = now_s if event.begun_ns is None else event.begun_ns / 1e9
                self._faults[event.fault, event.target] = FaultInForce(event, begun_s)
            case events.FaultHealed():
                ended = [each for each in self._faults.values() if _is_ended_by(event, each.event)]
                for each in ended:
                    del self._faults[each.event.fault, each.event.target]
            case _:
                pass

    def describe(self, *, now_s: float) -> tuple[str, ...]:
        """Returns a line for each fault."""
        return tuple(each.describe(now_s=now_s) for each in self._faults.values())


def _is_ended_by(healed: events.FaultHealed, injected: events.FaultInjected) -> bool:
    """Returns whether a fault is over. ``heal`` mends every link, and leaves what was done to nodes themselves."""
    is_of_nodes = not injected.links and injected.fault != _ISOLATE
    if healed.target == EVERYTHING.target and is_of_nodes:
        return False
    return healed.mends(fault=injected.fault, target=injected.target)


def _target(event: events.FaultInjected) -> str:
    if event.target.isdigit():
        return f"node {event.target}"
    return f"{'messages' if ' ' in event.target else 'link'} {event.target}"
