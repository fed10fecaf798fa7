"""Messages of brokers to the ZooKeeper server that can be interfered with."""

from collections.abc import Callable, Iterable

from laststand.emulator.cluster.link_messages import LinkMessages
from laststand.emulator.cluster.zookeeper_proxy import ZooKeeperProxy
from laststand.emulator.core import events
from laststand.emulator.core.types import NodeId
from laststand.emulator.plan.channels import Link
from laststand.emulator.plan.nodes import CONTROLLER
from laststand.emulator.rpc.interception import Interceptor


def server_messages(
    links: Iterable[Link[NodeId]], *, record: Callable[[events.MessageIntercepted], None]
) -> LinkMessages:
    """Returns the links that lead to the server, with proxies that know its messages.

    Args:
        links: the links whose messages will be affected; other nodes than the server apply faults themselves.
        record: takes an event for each message that was interfered with.
    """
    to_server = [link for link in links if link.target == CONTROLLER]
    return LinkMessages(to_server, make_proxy=_proxy, record=record)


def _proxy(link: Link[NodeId], target_address: str, interceptor: Callable[[], Interceptor]) -> ZooKeeperProxy:
    return ZooKeeperProxy(source=link.source, target_address=target_address, interceptor=interceptor)
