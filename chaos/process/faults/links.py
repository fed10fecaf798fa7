"""Shared by all network faults: breaks links, and verifies that they are broken.

A fault took effect if every link that answered a probe before is silent now, there is at least one such link, and each
broker that was using one of them reports its peer unreachable. A broker uses its link to the controller (heartbeats)
and, once it is registered, those to the leaders that it follows, unless it already reported that peer unreachable.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Final

import msgspec

from laststand.chaos.play.roles import resolve
from laststand.chaos.process.target import ProcessTarget
from laststand.emulator.cluster.probe import ProbeOutcome
from laststand.emulator.cluster.toxiproxy import Link, Toxiproxy
from laststand.emulator.core.errors import InvariantError
from laststand.emulator.core.types import BrokerId, BrokerState
from laststand.emulator.plan import actions
from laststand.emulator.plan.nodes import ActiveController
from laststand.emulator.storage.line_file import read_texts

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


class _StateLine(msgspec.Struct, tag_field="type", tag="BrokerStateChanged"):
    new: BrokerState


_PEERS: Final[msgspec.json.Decoder[_PeerLine | _BackLine]] = msgspec.json.Decoder(_PeerLine | _BackLine)
_STATES: Final[msgspec.json.Decoder[_StateLine]] = msgspec.json.Decoder(_StateLine)


def proxies(target: ProcessTarget) -> Toxiproxy:
    """Returns the proxies of a cluster that has them.

    Raises:
        InvariantError: the plan has a network fault, and the cluster was started without proxies.
    """
    if target.cluster.toxiproxy is None:
        raise InvariantError("a network fault in a cluster without proxies")
    return target.cluster.toxiproxy


async def break_links(
    target: ProcessTarget,
    links: Iterable[Link],
    change: Callable[[Iterable[Link]], Awaitable[tuple[Link, ...]]],
    *,
    is_silent: Callable[[ProcessTarget, Link], Awaitable[bool]] | None = None,
) -> actions.Outcome:
    """Applies a change that blocks links, and waits until the brokers have noticed.

    Args:
        target: the cluster.
        links: to be blocked.
        change: blocks the links, and returns those that it changed.
        is_silent: whether a link is blocked as intended; by default, if no byte comes back on a new connection.
    """
    wanted = tuple(links)
    passing = await asyncio.gather(*(passes(target, link) for link in wanted))
    live = [link for link, does_pass in zip(wanted, passing, strict=True) if does_pass]
    await asyncio.to_thread(target.cluster.files.catch_up)
    used = [link for link in live if _is_used(target, link)]
    marks = {link: _event_file(target, link).stat().st_size for link in used}
    changed = await change(wanted)
    reason = await _not_bitten(target, live, changed, marks, is_silent or is_mute)
    if reason is not None:
        return actions.unproved(reason) if changed else actions.no_op(reason)
    seen = f"{len(live)} of {len(wanted)} links silent"
    return actions.effective("; ".join([seen, *(f"{link.source} reports {link.target} unreachable" for link in used)]))


async def _not_bitten(
    target: ProcessTarget,
    live: list[Link],
    changed: tuple[Link, ...],
    marks: dict[Link, int],
    is_silent: Callable[[ProcessTarget, Link], Awaitable[bool]],
) -> str | None:
    if not any(link in changed for link in live):
        return "nothing passed there before"
    if not all(await asyncio.gather(*(is_silent(target, link) for link in live))):
        return "bytes still pass"
    if not await _all_noticed(target, marks):
        return "a node that used the link did not notice"
    return None


async def is_mute(target: ProcessTarget, link: Link) -> bool:
    """Returns whether a connection through a link can be opened, but no byte comes back."""
    return await proxies(target).probe(link, timeout_s=SILENT_AFTER_S) is ProbeOutcome.SILENT


async def passes(target: ProcessTarget, link: Link) -> bool:
    """Returns whether bytes pass through a link and its server answers."""
    if proxies(target).is_blocked(link):
        return False
    return await proxies(target).probe(link, timeout_s=PASSES_WITHIN_S) is ProbeOutcome.PASSES


def _is_used(target: ProcessTarget, link: Link) -> bool:
    is_recorded = link.source in target.cluster.layout.broker_ids and target.cluster.records_unreachable_peers
    if not is_recorded or not target.cluster.is_running(link.source):
        return False
    lines = read_texts(_event_file(target, link)).content
    if link.target in _unreachable(lines):
        return False
    if link.target in target.cluster.layout.controller_ids:
        return link.target == resolve(ActiveController(), target.image, {})
    if _is_starting(lines):
        return False
    source, leader = BrokerId(link.source), BrokerId(link.target)
    return any(state.leader == leader and source in state.isr for state in target.image.partitions.values())


def _event_file(target: ProcessTarget, link: Link) -> Path:
    return target.cluster.layout.event_file(link.source, target.cluster.incarnation(link.source))


def _unreachable(lines: bytes) -> set[int]:
    """Returns the peers that were reported unreachable and not since reported reachable."""
    peers: set[int] = set()
    for line in lines.split(b"\n")[:-1]:
        if b'"PeerUnreachable"' not in line and b'"PeerReachable"' not in line:
            continue
        match _PEERS.decode(line):
            case _PeerLine(peer=peer):
                peers.add(peer)
            case _BackLine(peer=peer):
                peers.discard(peer)
    return peers


def _is_starting(lines: bytes) -> bool:
    """Returns whether a broker is not registered yet: it fetches from no leader, even if an ISR still has it."""
    states = [line for line in lines.split(b"\n")[:-1] if b'"BrokerStateChanged"' in line]
    return not states or _STATES.decode(states[-1]).new is BrokerState.STARTING


async def _all_noticed(target: ProcessTarget, marks: dict[Link, int]) -> bool:
    waiting = dict(marks)
    loop = asyncio.get_running_loop()
    deadline = loop.time() + target.session_timeout_ms / 1000 + _NOTICE_MARGIN_S
    while waiting:
        for link, mark in list(waiting.items()):
            if _reports(read_texts(_event_file(target, link), begin=mark).content, link.target):
                del waiting[link]
        if waiting and loop.time() > deadline:
            return False
        if waiting:
            await asyncio.sleep(_LOOK_INTERVAL_S)
    return True


def _reports(lines: bytes, peer: int) -> bool:
    return any(
        b'"PeerUnreachable"' in line and isinstance(event := _PEERS.decode(line), _PeerLine) and event.peer == peer
        for line in lines.split(b"\n")[:-1]
    )
