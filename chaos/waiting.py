"""Waiting for what can be seen: no sleeps, a deadline, and the state seen last if it passes."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Final

from chaos.barriers import Sight

_LOOK_AGAIN_S: Final = 0.2
"""What is on a disk changes without a word, so whoever waits looks again this often."""


class Missed(Exception):
    """A state was not reached in time; the text says what was seen last."""


class Lookout:
    """Wakes whoever waits when something changed."""

    def __init__(self) -> None:
        self._changed = asyncio.Event()
        self._failure: str | None = None

    def change(self) -> None:
        """Something may look different now."""
        self._changed.set()

    def fail(self, reason: str) -> None:
        """Nothing will be reached any more: whoever waits, now or later, is told why."""
        self._failure = self._failure or reason
        self._changed.set()

    async def wait(self, see: Callable[[], Sight], *, timeout_s: float) -> Sight:
        """Waits until ``see`` says that the state is reached, looking again after every change.

        Raises:
            Missed: it was not within ``timeout_s`` seconds, or something failed.
        """
        clock = asyncio.get_running_loop().time
        deadline = clock() + timeout_s
        while True:
            self._changed.clear()
            sight = see()
            if sight.reached:
                return sight
            if self._failure is not None:
                raise Missed(self._failure)
            if clock() >= deadline:
                raise Missed(f"not reached within {timeout_s:g} s; seen: {sight.text}")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(min(deadline, clock() + _LOOK_AGAIN_S)):
                    await self._changed.wait()
