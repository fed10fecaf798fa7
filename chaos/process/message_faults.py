"""Faults of single messages on real processes: orders to the nodes that serve an API, and their effects.

Orders go to a node's own port, past all proxies. The node that serves the API writes an event for each touched message.
"""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from laststand.chaos.process.node_orders import send_order
from laststand.emulator.cluster.process_cluster import ProcessCluster
from laststand.emulator.core import events
from laststand.emulator.core.types import MessageFate, NodeId
from laststand.emulator.plan.channels import Channel
from laststand.emulator.rpc.interception import (
    INTERCEPTION_METHOD,
    INTERCEPTION_ORDERS,
    INTERCEPTION_REPORTS,
    INTERCEPTION_SERVICE,
    InterceptionOrder,
    InterceptionReport,
    Intervention,
    MessageKind,
)
from laststand.emulator.storage.line_file import line_files, read_texts

LASTING: Final = (Intervention.HOLD, Intervention.DELAY)
"""Message faults that continue in the next process of a node; counted ones end with the process."""


class _Line(msgspec.Struct, tag_field="type", tag="MessageIntercepted"):
    source: int
    target: int
    api: str
    way: str
    fate: str


_LINES: Final = msgspec.json.Decoder(_Line)


class MessageFaults:
    """Sends orders, and remembers which channels they are about.

    Args:
        cluster: of the nodes.
        note: records an order.

    Attributes:
        channels: those with a fault in force.
    """

    def __init__(self, cluster: ProcessCluster, *, note: Callable[[events.OrderGiven], None]) -> None:
        self.channels: dict[Channel[NodeId], InterceptionOrder] = {}
        self._cluster = cluster
        self._note = note
        self._counts: Counter[str] = Counter()
        self._read: dict[Path, int] = {}
        self._before: dict[Channel[NodeId], int] = {}

    async def order(
        self, channel: Channel[NodeId], intervention: Intervention, *, count: int | None = None, delay_ms: int = 0
    ) -> InterceptionReport | None:
        """Sends an order about a channel to the node that was dialled; ``None`` if it did not answer."""
        kind = MessageKind(channel.source, channel.api, channel.way)
        order = InterceptionOrder(intervention=intervention, kind=kind, count=count, delay_ms=delay_ms)
        if intervention is Intervention.RELEASE and count is None:
            self._forget(channel)
        elif intervention in (*LASTING, Intervention.LOSE_NEXT, Intervention.DUPLICATE_NEXT):
            self._forget(channel)
            self._remember(channel, order)
        return await self.send(channel.target, order)

    def touched(self, channel: Channel[NodeId]) -> int:
        """Returns the number of messages touched since the fault on the channel began."""
        return self.intercepted(channel) - self._before.get(channel, 0)

    def _remember(self, channel: Channel[NodeId], order: InterceptionOrder) -> None:
        self.channels[channel] = order
        self._before[channel] = self.intercepted(channel)
        if order.intervention in LASTING:
            lasting = self._cluster.interceptions
            lasting[channel.target] = (*lasting.get(channel.target, ()), order)

    def _forget(self, channel: Channel[NodeId]) -> None:
        order = self.channels.pop(channel, None)
        lasting = self._cluster.interceptions
        lasting[channel.target] = tuple(each for each in lasting.get(channel.target, ()) if each != order)

    async def end_all(self) -> int:
        """Ends all faults of messages; returns the number of channels that had one."""
        ended = tuple(self.channels)
        for channel in ended:
            await self.order(channel, Intervention.RELEASE)
        return len(ended)

    async def send(self, node_id: NodeId, order: InterceptionOrder) -> InterceptionReport | None:
        """Sends an order to a node; ``None`` if it did not answer."""
        report = await send_order(
            self._cluster,
            node_id,
            INTERCEPTION_ORDERS.encode(order),
            service=INTERCEPTION_SERVICE,
            method=INTERCEPTION_METHOD,
            note=self._note,
        )
        return None if report is None else INTERCEPTION_REPORTS.decode(report)

    def intercepted(self, channel: Channel[NodeId]) -> int:
        """Returns the number of touched messages of a kind, by the events of the node that was dialled."""
        self._cluster.files.catch_up()
        events = self._cluster.layout.directory / "events"
        for path in line_files(events, f"{channel.target}-*"):
            self._count(path)
        return self._counts[str(channel)]

    def _count(self, path: Path) -> None:
        lines, self._read[path] = read_texts(path, begin=self._read.get(path, 0))
        for line in lines.splitlines():
            if b'"MessageIntercepted"' in line:
                intercepted = _LINES.decode(line)
                if intercepted.fate != MessageFate.RELEASED:
                    self._counts[f"{intercepted.source}->{intercepted.target} {intercepted.api} {intercepted.way}"] += 1
