"""The loop of a node: inputs that are ready together make one turn.

A turn runs without interruption on the event loop: it steps every input in order and executes what follows, files
first, then one write of events, then messages. Putting inputs together costs no latency, because they were waiting
anyway, and saves writes, syncs and frames.

A timer of the core is an input like any other, enqueued when it is due.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from laststand.emulator.core.node_clock import NodeClock

InputT = TypeVar("InputT")

TURN_INPUTS_MAX: Final = 256
"""Inputs of one turn; more wait for the next, so that sockets are served in between."""


def monotonic_ms(at_ns: int | None = None) -> int:
    """Returns the machine's monotonic clock in ms, now or at a reading of it in ns.

    ``NodeClock`` converts it to the ``now_ms`` of every step.
    """
    return (time.monotonic_ns() if at_ns is None else at_ns) // 1_000_000


class TurnLoop(Generic[InputT]):
    """Collects inputs and runs turns.

    Args:
        run_turn: takes the inputs of a turn.
        next_deadline_ms: when the core next wants a timer input, or ``None``.
        timer_input: makes the input for a timer.
        clock: of the node; it decides when deadlines are due.
    """

    def __init__(
        self,
        *,
        run_turn: Callable[[list[InputT]], None],
        next_deadline_ms: Callable[[], int | None],
        timer_input: Callable[[], InputT],
        clock: NodeClock,
    ) -> None:
        self._run_turn: Callable[[list[InputT]], None] = run_turn
        self._next_deadline_ms = next_deadline_ms
        self._timer_input: Callable[[], InputT] = timer_input
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[InputT] = deque()
        self._is_scheduled = True  # until ``start``
        self._is_stopped = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms: int | None = None

    def start(self, first: InputT) -> None:
        """Runs the first turn with ``first`` before all inputs that arrived until now."""
        self._waiting.appendleft(first)
        self._loop.call_soon(self._turn)

    def enqueue(self, incoming: InputT) -> None:
        """Adds an input to the next turn."""
        if not self._is_stopped:
            self._waiting.append(incoming)
            self._schedule()

    def enqueue_first(self, incoming: InputT) -> None:
        """Adds an input about something that has happened already, ahead of the waiting ones."""
        if not self._is_stopped:
            self._waiting.appendleft(incoming)
            self._schedule()

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._turn)

    def stop(self) -> None:
        """Runs no further turn; inputs are dropped from now on."""
        self._is_stopped = True
        self._waiting.clear()
        if self._timer is not None:
            self._timer.cancel()

    def _turn(self) -> None:
        if self._is_stopped:
            return
        count = min(len(self._waiting), TURN_INPUTS_MAX)
        inputs = [self._waiting.popleft() for _ in range(count)]
        has_more = self._is_scheduled = bool(self._waiting)
        if inputs:
            self._run_turn(inputs)
        if self._is_stopped:
            return
        if has_more:
            self._loop.call_soon(self._turn)
        self._arm()

    def _arm(self) -> None:
        deadline_ms = self._next_deadline_ms()
        if deadline_ms == self._timer_ms:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_ms = deadline_ms
        self._timer = None
        if deadline_ms is not None:
            self._timer = self._loop.call_at(self._clock.due_ms(deadline_ms) / 1000, self._fire)

    def rearm(self) -> None:
        """The clock was changed: the timer is due at another time."""
        self._timer_ms = None
        self._arm()

    def _fire(self) -> None:
        self._timer = self._timer_ms = None
        self.enqueue(self._timer_input())
