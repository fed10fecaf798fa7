"""Frames that no client should send: random bytes, and requests that were cut or changed.

``python -m tests.wire.bad_frames COUNT`` sends so many to a cluster of three brokers, which have to survive them and
must not grow.
"""

import asyncio
import contextlib
import random
import struct
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import psutil

from laststand.emulator.kafka_listener.message_codec import Writer, request_codec
from laststand.emulator.kafka_listener.messages import api_named
from tests.wire.player import Cluster, Connection
from tests.wire.run import VECTORS, cases_of, skip_reason, wire_cluster

_GROWTH_MAX: Final = 1.3
"""Of a broker's resident memory, from the first tenth of the frames to the last."""

_TENTHS: Final = 10


def valid_frames() -> list[bytes]:
    """Returns the requests of all cases that are played."""
    cases = [case for case in cases_of(VECTORS) if skip_reason(case) is None]
    return [frame_of(step) for case in cases for step in case["steps"] if "request" in step]


def frame_of(step: dict[str, Any]) -> bytes:
    """Returns a request of a case; names that only a play of it knows are as they are, and batches are empty."""
    api = api_named(step["api"])
    writer = Writer()
    writer.append(struct.pack(">hhih", api.key, step["version"], 1, 3) + b"vec")
    if step["version"] in api.flexible:
        writer.append(b"\0")
    head = b"".join(writer.buffers())
    with contextlib.suppress(struct.error, TypeError, ValueError, AttributeError, KeyError):
        request_codec(api.key, step["version"]).write(_without_batches(step["request"]), writer)
        return b"".join(writer.buffers())
    return head


def _without_batches(value: Any) -> Any:
    match value:
        case {"$batch": _} | {"$subscription": _} | {"$concat": _}:
            return b""
        case dict():
            return {name: _without_batches(each) for name, each in value.items()}
        case list():
            return [_without_batches(each) for each in value]
    return value


def bad_frame(chance: random.Random, valid: Sequence[bytes]) -> bytes:
    """Returns a frame of random bytes, or one that was cut or changed; mostly of the size that it says."""
    if chance.random() < 0.2:
        content = chance.randbytes(chance.randrange(80))
    else:
        changed = bytearray(chance.choice(valid))
        for _ in range(chance.randrange(4)):
            changed[chance.randrange(4, len(changed))] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
        content = bytes(changed[: chance.randrange(len(changed) + 1)] if chance.random() < 0.3 else changed)
    size = chance.choice((0, -1, 1 << 30)) if chance.random() < 0.05 else len(content)
    return struct.pack(">i", size) + content


def send_bad_frames(cluster: Cluster, count: int, *, seed: int) -> None:
    """Sends frames, each by a connection of its own; then all brokers have to answer."""
    chance, valid = random.Random(seed), valid_frames()
    addresses = [*cluster.addresses.values()]
    for number in range(count):
        connection = Connection(addresses[number % len(addresses)])
        connection.send_bytes(bad_frame(chance, valid))
        connection.close()
    for address in addresses:
        connection = Connection(address)
        assert len(connection.ask("Metadata", 12, {"topics": []})["brokers"]) == len(addresses)
        connection.close()


async def _soak(directory: Path, count: int) -> float:
    """Sends so many frames; returns the largest growth of a broker's resident memory."""
    async with wire_cluster(directory) as address:
        cluster = await asyncio.to_thread(Cluster, address)
        nodes = [child for child in psutil.Process().children(recursive=True) if "broker" in child.cmdline()]
        sizes = []
        for tenth in range(_TENTHS):
            await asyncio.to_thread(send_bad_frames, cluster, count // _TENTHS, seed=tenth)
            sizes.append([node.memory_info().rss for node in nodes])
        return max(last / first for first, last in zip(sizes[0], sizes[-1], strict=True))


def main(arguments: list[str]) -> int:
    """Sends frames; returns the exit code."""
    (count,) = arguments
    with tempfile.TemporaryDirectory(prefix="frames-") as name:
        growth = asyncio.run(_soak(Path(name), int(count)))
    sys.stdout.write(f"{count} frames; memory of a broker grew to {growth:.2f} of what it was\n")
    return 1 if growth > _GROWTH_MAX else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
