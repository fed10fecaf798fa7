"""Waiting for an observable state, without sleeps: with a deadline, and the state seen last if it passes."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Final

from laststand.chaos.play.barriers import Observation
from laststand.emulator.core.errors import EmulatorError

_LOOK_AGAIN_S: Final = 0.2
"""Changes on a disk are not announced, so waiting tasks look again this often."""


class StepError(EmulatorError):
    """A step did not reach its state; the text has the state seen last."""


class ChangeSignal:
    """Wakes waiters when something changed."""

    def __init__(self) -> None:
        self._changed = asyncio.Event()
        self._failure: str | None = None

    def change(self) -> None:
        """Wakes all waiters: the observed state may have changed."""
        self._changed.set()

    def fail(self, reason: str) -> None:
        """Fails every wait, now and later, with a reason."""
        self._failure = self._failure or reason
        self._changed.set()

    async def wait(self, see: Callable[[], Observation], *, timeout_s: float) -> Observation:
        """Waits until ``see`` says that the state is reached, looking again after every change.

        Raises:
            StepError: the state was not reached within ``timeout_s`` seconds, or ``fail`` was called.
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
