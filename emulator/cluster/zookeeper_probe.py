"""Ask a ZooKeeper server for a sign of life: at start by a word, through proxies by a session of the probe's own.

::

    ConnectRequest   int 44 | int 0 | long last zxid seen 0 | int timeout, ms | long session 0 | 16 bytes | bool
    its answer       int size | int 0 | int timeout | long session | password | bool
    ping             int 8 | int xid -2 | int type 11;  answered by a header with that xid
    exists           int size | int xid | int type 3 | path | bool watch
"""

import asyncio
import struct
from collections.abc import Mapping
from typing import Final

from laststand.emulator.cluster.layout import ClusterLayout
from laststand.emulator.cluster.probe import ProbeConnection
from laststand.emulator.core.address import host_and_port
from laststand.emulator.core.types import NodeId

_TIMEOUT_MS: Final = 10_000
_PASSWORD_BYTES: Final = 16
_GREETING: Final = struct.pack(">iiqiqi16sx", 45, 0, 0, _TIMEOUT_MS, 0, _PASSWORD_BYTES, bytes(_PASSWORD_BYTES))
_PING_XID: Final = -2
_PING: Final = struct.pack(">iii", 8, _PING_XID, 11)
_EXISTS: Final = 3
_PATH_BYTES: Final = 1024
_DIAL_AGAIN_S: Final = 0.02
_ANSWER_WITHIN_S: Final = 1.0


class ZooKeeperProbeConnection(ProbeConnection):
    """``ProbeConnection`` to a ZooKeeper server. Its session expires soon after it ends; nothing depends on it."""

    greeting = _GREETING
    _is_greeted = False

    async def _exchange(self, writer: asyncio.StreamWriter, ballast_bytes: int) -> None:
        """Sends a ping after reads of nodes with long names, and awaits its answer."""
        for number in range(1, -(-ballast_bytes // _PATH_BYTES) + 1):
            path = b"/" + b"." * _PATH_BYTES
            request = struct.pack(f">iii{len(path)}sx", number, _EXISTS, len(path), path)
            writer.write(len(request).to_bytes(4, "big") + request)
        writer.write(_PING)
        if not self._is_greeted:
            await self._read_frame()
            self._is_greeted = True
        xid = None
        while xid != _PING_XID:
            xid = int.from_bytes((await self._read_frame())[:4], "big", signed=True)

    async def _read_frame(self) -> bytes:
        size = int.from_bytes(await self.reader.readexactly(4), "big")
        return await self.reader.readexactly(size)


def server_probes(layout: ClusterLayout) -> Mapping[NodeId, type[ProbeConnection]]:
    """Returns the probe of the node that is a ZooKeeper server; empty if there is none."""
    return {node: ZooKeeperProbeConnection for node in layout.node_ids if layout.is_zookeeper(node)}


async def await_zookeeper(address: str, *, timeout_s: float) -> bool:
    """Asks a server again and again until it serves; returns whether that was within ``timeout_s`` seconds."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_s
    while not await serves(address):
        if loop.time() > deadline:
            return False
        await asyncio.sleep(_DIAL_AGAIN_S)
    return True


async def serves(address: str) -> bool:
    """Asks a server once; returns whether it serves."""
    try:
        async with asyncio.timeout(_ANSWER_WITHIN_S):
            reader, writer = await asyncio.open_connection(*host_and_port(address))
            try:
                writer.write(b"srvr")
                return b"Zxid:" in await reader.read()
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return False
