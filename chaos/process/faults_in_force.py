"""The faults in force, folded from the harness's own events: injected, and not healed since."""

from collections.abc import Mapping
from typing import NamedTuple

from laststand.emulator.core import events
from laststand.emulator.core.types import NodeId


class FaultInForce(NamedTuple):
    """A fault that was injected and not healed.

    Attributes:
        event: of its injection.
        since_s: when it began, by the monotonic clock.
    """

    event: events.FaultInjected
    since_s: float

    def describe(self, *, now_s: float, kafka_clients: Mapping[NodeId, str]) -> str:
        """Returns name, target, age and effect in one line."""
        effect = "no effect was seen" if self.event.effect is None else self.event.effect
        target = _target(self.event, kafka_clients)
        return f"{self.event.fault} on {target} for {now_s - self.since_s:.1f} s: {effect}"


class FaultsInForce:
    """The faults of one harness, in the order in which they began."""

    def __init__(self) -> None:
        self._faults: dict[tuple[str, str], FaultInForce] = {}
        self._kafka_clients: Mapping[NodeId, str] = {}

    def note(self, event: events.Event, *, now_s: float) -> None:
        """Takes an event of the harness into account; ``now_s`` is by the monotonic clock."""
        match event:
            case events.NodeStarted():
                self._kafka_clients = {client_id: name for name, client_id in event.kafka_clients.items()}
            case events.FaultInjected():
                begun_s = now_s if event.begun_ns is None else event.begun_ns / 1e9
                self._faults[event.fault, event.target] = FaultInForce(event, begun_s)
            case events.FaultHealed():
                ended = [each for each in self._faults.values() if event.mends(each.event)]
                for each in ended:
                    del self._faults[each.event.fault, each.event.target]
            case _:
                pass

    def describe(self, *, now_s: float) -> tuple[str, ...]:
        """Returns a line for each fault."""
        return tuple(each.describe(now_s=now_s, kafka_clients=self._kafka_clients) for each in self._faults.values())


def _target(event: events.FaultInjected, kafka_clients: Mapping[NodeId, str]) -> str:
    if event.target.isdigit():
        return f"node {event.target}"
    source, arrow, rest = event.target.partition("->")
    dialler = kafka_clients.get(event.links[0].source, source) if event.links else source
    return f"{'messages' if ' ' in rest else 'link'} {dialler}{arrow}{rest}"
