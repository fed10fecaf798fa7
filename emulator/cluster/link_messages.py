"""Faults of messages to nodes of other programs: a proxy for each link on which a scenario interferes with messages.

A proxy stands between the link's Toxiproxy, if there is one, and the node::

    broker 0  ->  Toxiproxy 0->100  ->  proxy 0->100, which knows messages  ->  controller

Held messages are lost if the process that they are for ends, as with Laststand's own nodes.
"""

from collections.abc import Callable, Collection, Iterable
from typing import Final, TypeAlias

from laststand.emulator.cluster.ports import LOOPBACK
from laststand.emulator.core import events
from laststand.emulator.core.types import NodeId
from laststand.emulator.plan.channels import Link
from laststand.emulator.rpc.frame_proxy import FrameProxy
from laststand.emulator.rpc.interception import InterceptionOrder, InterceptionReport, Interceptor

MakeProxy: TypeAlias = Callable[[Link[NodeId], str, Callable[[], Interceptor]], FrameProxy]
"""Makes the proxy of a link, to the address of its target, with what returns the target's interceptor."""


class LinkMessages:
    """The proxies of a cluster, and the faults of messages in force.

    Args:
        links: on which a scenario interferes with messages.
        make_proxy: for the protocol of their targets.
        record: takes an event for each message that was interfered with.
    """

    def __init__(
        self,
        links: Collection[Link[NodeId]],
        *,
        make_proxy: MakeProxy,
        record: Callable[[events.MessageIntercepted], None],
    ) -> None:
        self._links: Final = frozenset(links)
        self._make_proxy = make_proxy
        self._record = record
        self._interceptors: dict[NodeId, Interceptor] = {}
        self._proxies: list[FrameProxy] = []

    async def open(self, addresses: Callable[[NodeId], str], *, host: str = LOOPBACK) -> dict[Link[NodeId], str]:
        """Starts all proxies; returns their addresses.

        Args:
            addresses: the nodes' own addresses.
            host: the interface on which the proxies do.
        """
        return {link: await self._open(link, addresses(link.target), host) for link in sorted(self._links)}

    async def _open(self, link: Link[NodeId], target_address: str, host: str) -> str:
        proxy = self._make_proxy(link, target_address, lambda: self._interceptors[link.target])
        self._proxies.append(proxy)
        return await proxy.open(host)

    def starting(self, node_id: NodeId, orders: Iterable[InterceptionOrder]) -> None:
        """Prepares the start of a node's process: these orders are in force, and no message is held."""
        self._interceptors[node_id] = Interceptor(node_id, orders, record=self._record)

    def covers(self, node_id: NodeId) -> bool:
        """Returns whether messages to a node pass through proxies; it was started at least once."""
        return node_id in self._interceptors

    def obey(self, node_id: NodeId, order: InterceptionOrder) -> InterceptionReport:
        """Carries out an order about messages to a node, and their answers; it was started at least once."""
        return self._interceptors[node_id].obey(order)

    async def close(self) -> None:
        """Closes all proxies."""
        for proxy in self._proxies:
            await proxy.close()
