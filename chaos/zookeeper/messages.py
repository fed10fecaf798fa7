"""Messages of brokers to the ZooKeeper server that can be interfered with."""

from collections.abc import Callable, Iterable

from emulator.cluster.link_messages import LinkMessages
from emulator.cluster.zookeeper_proxy import ZooKeeperProxy
from emulator.core.events import MessageIntercepted
from emulator.core.types import NodeId
from emulator.plan.channels import Link
from emulator.plan.nodes import CONTROLLER
from emulator.rpc.interception import Interceptor


def server_messages(links: Iterable[Link[NodeId]], *, record: Callable[[MessageIntercepted], None]) -> LinkMessages:
    """Returns those of these links that lead to the server, with proxies that know its messages.

    Args:
        links: to whose messages something will be done; other nodes than the server do it themselves.
        record: takes an event for each message that was interfered with.
    """
    to_server = [link for link in links if link.target == CONTROLLER]
    return LinkMessages(to_server, make_proxy=_proxy, record=record)


def _proxy(link: Link[NodeId], target_address: str, interceptor: Callable[[], Interceptor]) -> ZooKeeperProxy:
    return ZooKeeperProxy(source=link.source, target_address=target_address, interceptor=interceptor)
