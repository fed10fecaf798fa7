"""The network of one cluster in containers: addresses that a node keeps for as long as the cluster exists.

Static addresses need a subnet that was requested explicitly. So the engine first chooses a free subnet for a network,
and that subnet is then requested. The harness reaches containers at the same addresses as they reach each other: on
Linux the machine is part of every bridge, and a harness in a container joins the network.
"""

import ipaddress
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import docker
from docker.errors import APIError, NotFound
from docker.models.containers import Container
from docker.models.networks import Network
from docker.types import EndpointConfig, IPAMConfig, IPAMPool

_ATTEMPTS: Final = 10
"""Another network may take the subnet in between."""

_GATEWAY: Final = 1
"""The machine itself: what the engine takes where nobody asks for another."""

_FIRST_HOST: Final = 10
_IN_A_CONTAINER: Final = Path("/.dockerenv")


class ClusterNetwork:
    """A bridge network with an address for each member. All methods block.

    Args:
        client: of the engine.
        name: of the network.
        labels: of the network.
        members: names of members, which get addresses in this order.

    Attributes:
        addresses: of the members.
        harness_address: the address at which members reach this process: its container's, or the machine's.
    """

    def __init__(
        self, client: docker.DockerClient, *, name: str, labels: Mapping[str, str], members: tuple[str, ...]
    ) -> None:
        self._client = client
        self.name = name
        self.network = _make(client, name, dict(labels))
        (pool,) = self.network.attrs["IPAM"]["Config"]
        network = ipaddress.ip_network(pool["Subnet"]).network_address
        first = network + _FIRST_HOST
        self.addresses: Mapping[str, str] = {member: str(first + index) for index, member in enumerate(members)}
        own = own_container(client)
        self.harness_address = str(network + _GATEWAY)
        if own is not None:
            self.network.connect(own)
            own.reload()
            self.harness_address = own.attrs["NetworkSettings"]["Networks"][name]["IPAddress"]

    def endpoint(self, member: str) -> dict[str, EndpointConfig]:
        """Returns the configuration with which a container of that member is made."""
        return {self.name: self._client.api.create_endpoint_config(ipv4_address=self.addresses[member])}

    def disconnect(self, container: Container) -> bool:
        """Takes a container off the network; returns whether it was on it."""
        if not self._is_connected(container):
            return False
        self.network.disconnect(container)
        return True

    def connect(self, container: Container, member: str) -> bool:
        """Connects a container again, with its former address; returns whether it was disconnected."""
        if self._is_connected(container):
            return False
        self.network.connect(container, ipv4_address=self.addresses[member])
        return True

    def _is_connected(self, container: Container) -> bool:
        container.reload()
        return self.name in container.attrs["NetworkSettings"]["Networks"]


def own_container(client: docker.DockerClient) -> Container | None:
    """Returns the container in which this process runs; ``None`` if it runs in none of this engine."""
    if not _IN_A_CONTAINER.exists():
        return None
    try:
        return client.containers.get(socket.gethostname())
    except NotFound:
        return None


def _make(client: docker.DockerClient, name: str, labels: dict[str, str]) -> Network:
    for attempt in range(_ATTEMPTS):
        found = client.networks.create(name, labels=labels)
        found.reload()
        subnet = found.attrs["IPAM"]["Config"][0]["Subnet"]
        found.remove()
        ipam = IPAMConfig(pool_configs=[IPAMPool(subnet=subnet)])
        try:
            network = client.networks.create(name, labels=labels, ipam=ipam)
        except APIError:
            if attempt == _ATTEMPTS - 1:
                raise
            continue
        network.reload()
        return network
    raise AssertionError("the last attempt returns or raises")
