"""Waiting until a node in a container listens."""

import asyncio
import ssl
from typing import Final

from laststand.emulator.cluster.child import START_TIMEOUT_S, StartError
from laststand.emulator.cluster.containers.container_process import ContainerProcess
from laststand.emulator.cluster.probe import ProbeOutcome, probe
from laststand.emulator.cluster.zookeeper_probe import serves

_PROBE_TIMEOUT_S: Final = 1.0
_LOOK_INTERVAL_S: Final = 0.02
_SERVER_TIMEOUT_S: Final = 60.0
"""A JVM has more to do than our nodes, and in an image no archive of its classes."""


async def await_listener(
    process: ContainerProcess, address: str, *, is_zookeeper: bool, context: ssl.SSLContext | None = None
) -> None:
    """Waits until a node answers at its address.

    Args:
        process: the node's.
        address: ``host:port``.
        is_zookeeper: whether it is a ZooKeeper server.
        context: of TLS; ``None`` without TLS.

    Raises:
        StartError: the node ended first, or took too long; its process is gone.
    """
    if await listens(process, address, is_zookeeper=is_zookeeper, context=context):
        return
    if process.end is not None:
        raise StartError(name=process.name, reason="ended before it was ready", end=process.end)
    reason = f"was not ready within {_timeout_s(is_zookeeper=is_zookeeper)} s"
    raise StartError(name=process.name, reason=reason, end=await process.kill())


async def listens(
    process: ContainerProcess, address: str, *, is_zookeeper: bool, context: ssl.SSLContext | None = None
) -> bool:
    """Waits until a node answers at its address; returns whether it did before it ended, and in time."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _timeout_s(is_zookeeper=is_zookeeper)
    while not await _answers(address, is_zookeeper=is_zookeeper, context=context):
        if process.end is not None or loop.time() > deadline:
            return False
        await asyncio.sleep(_LOOK_INTERVAL_S)
    return True


def _timeout_s(*, is_zookeeper: bool) -> float:
    return _SERVER_TIMEOUT_S if is_zookeeper else START_TIMEOUT_S


async def _answers(address: str, *, is_zookeeper: bool, context: ssl.SSLContext | None) -> bool:
    if is_zookeeper:
        return await serves(address)
    return await probe(address, timeout_s=_PROBE_TIMEOUT_S, context=context) is ProbeOutcome.PASSES
