"""What all network faults share: break links, and make sure that they are broken.

A fault has bitten if every link that answered a probe before is silent now, there is at least one such link, and each
broker that was using one of them reports its peer unreachable. A broker uses its link to the controller (heartbeats)
and those to the leaders that it follows, unless it already reported that peer unreachable.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Final

import msgspec

from chaos.faults.stage import Stage
from emulator.cluster.probe import ProbeOutcome
from emulator.cluster.process_cluster import CLIENT_NAME
from emulator.cluster.toxiproxy import Link, Toxiproxy
from emulator.core.errors import InvariantError
from emulator.core.types import BrokerId, NodeId

SILENT_AFTER_S: Final = 0.3
"""A link that brings no byte for so long is cut."""

PASSES_WITHIN_S: Final = 2.0
"""A link that works brings a byte within this, on a machine that is busy with something else."""

_LOOK_INTERVAL_S: Final = 0.02
_NOTICE_MARGIN_S: Final = 3.0


class _PeerLine(msgspec.Struct, tag_field="type", tag="PeerUnreachable"):
    peer: int


class _BackLine(msgspec.Struct, tag_field="type", tag="PeerReachable"):
    peer: int


_PEERS: Final[msgspec.json.Decoder[_PeerLine | _BackLine]] = msgspec.json.Decoder(_PeerLine | _BackLine)


def proxies(stage: Stage) -> Toxiproxy:
    """Returns the proxies of a cluster that has them.

    Raises:
        InvariantError: the plan has a network fault, and the cluster was started without proxies.
    """
    if stage.cluster.toxiproxy is None:
        raise InvariantError("a network fault in a cluster without proxies")
    return stage.cluster.toxiproxy


def link_name(node_id: NodeId, client: NodeId) -> str:
    """Returns a node's name in links."""
    return CLIENT_NAME if node_id == client else str(node_id)


async def break_links(
    stage: Stage, links: Iterable[Link], change: Callable[[Iterable[Link]], Awaitable[tuple[Link, ...]]]
) -> str | None:
    """Applies a change to links; returns how it was seen to take effect, or ``None`` if it was a no-op."""
    wanted = tuple(links)
    live = [link for link in wanted if await _passes(stage, link)] if wanted else []
    used = [link for link in live if _is_used(stage, link)]
    marks = {link: _event_file(stage, link).stat().st_size for link in used}
    changed = await change(wanted)
    if not any(link in changed for link in live):
        return None
    outcomes = await asyncio.gather(*(proxies(stage).probe(link, timeout_s=SILENT_AFTER_S) for link in live))
    if any(outcome is not ProbeOutcome.SILENT for outcome in outcomes):
        return None
    if not await _all_noticed(stage, marks):
        return None
    seen = f"{len(live)} of {len(wanted)} links silent"
    return "; ".join([seen, *(f"{link.source} reports {link.target} unreachable" for link in used)])


async def _passes(stage: Stage, link: Link) -> bool:
    if proxies(stage).state(link).value != "open":
        return False
    return await proxies(stage).probe(link, timeout_s=SILENT_AFTER_S * 2) is ProbeOutcome.PASSES


def _is_used(stage: Stage, link: Link) -> bool:
    if link.source == CLIENT_NAME or not stage.cluster.is_running(NodeId(int(link.source))):
        return False
    if int(link.target) in _unreachable(_event_file(stage, link).read_bytes()):
        return False
    if int(link.target) == stage.cluster.layout.controller_id:
        return True
    source, target = BrokerId(NodeId(int(link.source))), BrokerId(NodeId(int(link.target)))
    return any(state.leader == target and source in state.isr for state in stage.watch.image.partitions.values())


def _event_file(stage: Stage, link: Link) -> Path:
    source = NodeId(int(link.source))
    return stage.cluster.layout.event_file(source, stage.cluster.incarnation(source))


def _unreachable(lines: bytes) -> set[int]:
    """Returns the peers that were reported unreachable and not since reported reachable."""
    peers: set[int] = set()
    for line in lines.split(b"\n")[:-1]:  # what follows the last line end is not whole yet
        if b'"PeerUnreachable"' not in line and b'"PeerReachable"' not in line:
            continue
        match _PEERS.decode(line):
            case _PeerLine(peer=peer):
                peers.add(peer)
            case _BackLine(peer=peer):
                peers.discard(peer)
    return peers


async def _all_noticed(stage: Stage, marks: dict[Link, int]) -> bool:
    waiting = dict(marks)
    loop = asyncio.get_running_loop()
    deadline = loop.time() + stage.session_timeout_ms / 1000 + _NOTICE_MARGIN_S
    while waiting:
        for link, mark in list(waiting.items()):
            with _event_file(stage, link).open("rb") as file:
                file.seek(mark)
                if _reports(file.read(), int(link.target)):
                    del waiting[link]
        if waiting and loop.time() > deadline:
            return False
        if waiting:
            await asyncio.sleep(_LOOK_INTERVAL_S)
    return True


def _reports(lines: bytes, peer: int) -> bool:
    return any(
        b'"PeerUnreachable"' in line and isinstance(told := _PEERS.decode(line), _PeerLine) and told.peer == peer
        for line in lines.split(b"\n")[:-1]
    )
