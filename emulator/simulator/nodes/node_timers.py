"""Timers of simulated nodes: each node has one, set to its core's next deadline by the node's own clock."""

from functools import partial
from typing import Protocol

from laststand.emulator.core import inputs
from laststand.emulator.simulator.nodes.event_queue import EventQueue
from laststand.emulator.simulator.nodes.nodes import InputT, Node


class FireTimer(Protocol):
    """Hands a timer that fires to a node."""

    def __call__(self, node: Node[InputT], incoming: inputs.TimerFired, /) -> None:
        """Steps its core and executes the effects."""
        ...


class NodeTimers:
    """Sets timers.

    Args:
        queue: virtual time.
        step: hands ``TimerFired`` to a node.
    """

    def __init__(self, queue: EventQueue, step: FireTimer) -> None:
        self._queue = queue
        self._step = step

    def arm(self, node: Node[InputT]) -> None:
        """Sets the timer of a node that runs."""
        assert node.core is not None
        deadline = node.core.next_deadline_ms()
        due_ms = None if deadline is None else max(node.clock.due_ms(deadline), self._queue.now_ms)
        if due_ms == node.armed_ms:
            return
        node.armed_ms = due_ms
        if due_ms is None:
            return
        self._queue.at(due_ms, partial(self._fire, node, node.incarnation, due_ms))

    def _fire(self, node: Node[InputT], incarnation: int, due_ms: int) -> None:
        if node.armed_ms == due_ms and node.incarnation == incarnation:
            node.armed_ms = None
            self._step(node, inputs.TimerFired(cause_id=node.next_timer_cause()))
