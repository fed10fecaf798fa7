"""Waiting for what can be seen: no sleeps, a deadline, and the state seen last if it passes."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Final

from chaos.play.barriers import Observation
from emulator.core.errors import EmulatorError

_LOOK_AGAIN_S: Final = 0.2
"""Changes on a disk are not announced, so whoever waits looks again this often."""


class StepError(EmulatorError):
    """A step did not come to what it must come to; the text says what was seen last."""


class ChangeSignal:
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

    async def wait(self, see: Callable[[], Observation], *, timeout_s: float) -> Observation:
        """Waits until ``see`` says that the state is reached, looking again after every change.

        Raises:
            StepError: it was not within ``timeout_s`` seconds, or something failed.
        """
        clock = asyncio.get_running_loop().time
        deadline = clock() + timeout_s
        while True:
            self._changed.clear()
            observation = see()
            if observation.reached:
                return observation
            if self._failure is not None:
                raise StepError(self._failure)
            if clock() >= deadline:
                raise StepError(f"not reached within {timeout_s:g} s; seen: {observation.text}")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(min(deadline, clock() + _LOOK_AGAIN_S)):
                    await self._changed.wait()
