"""Waiting until a node in a container listens."""

import asyncio
from typing import Final

from emulator.cluster.child import START_TIMEOUT_S, StartError
from emulator.cluster.containers.container_process import ContainerProcess
from emulator.cluster.probe import ProbeOutcome, probe

_PROBE_TIMEOUT_S: Final = 1.0
_LOOK_INTERVAL_S: Final = 0.02


async def await_listener(process: ContainerProcess, address: str) -> None:
    """Waits until a node answers at its address.

    Raises:
        StartError: it ended first, or took too long; it runs no more.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + START_TIMEOUT_S
    while await probe(address, timeout_s=_PROBE_TIMEOUT_S) is not ProbeOutcome.PASSES:
        if process.end is not None:
            raise StartError(name=process.name, reason="ended before it was ready", end=process.end)
        if loop.time() > deadline:
            end = await process.kill()
            raise StartError(name=process.name, reason=f"was not ready within {START_TIMEOUT_S} s", end=end)
        await asyncio.sleep(_LOOK_INTERVAL_S)
