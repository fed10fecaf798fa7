"""The addresses of nodes as this one process knows them.

Metadata has node ids only. Every process has its own address book, so that proxies are possible: node A's address for
node B may be that of the proxy between them. A node keeps its port for a run, so a book never changes once it is
complete.
"""

from collections.abc import Mapping

from laststand.emulator.core.errors import TransportError
from laststand.emulator.core.types import NodeId


class AddressBook:
    """Addresses (``host:port``) by node id.

    Args:
        addresses: every node that this process may call.
    """

    def __init__(self, addresses: Mapping[NodeId, str]) -> None:
        self._addresses = dict(addresses)

    def address_of(self, node_id: NodeId) -> str:
        """Returns the address of a node.

        Raises:
            TransportError: the address book lacks the node.
        """
        if node_id not in self._addresses:
            raise TransportError(node_id=node_id, reason="no address is known")
        return self._addresses[node_id]
