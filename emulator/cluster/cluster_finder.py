"""Finds a cluster that another party runs, and refuses a cluster that is not meant to be broken.

Without a word of the user's only loopback and private addresses are dialled, those that brokers advertise among them.
With ``--i-own-this-cluster`` it may be any address, and the cluster must have that id.
"""

import asyncio
import contextlib
import ipaddress
import ssl
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from laststand.emulator.cluster.external_cluster import ExternalCluster
from laststand.emulator.core.address import PORT_MAX, host_and_port
from laststand.emulator.core.errors import ConfigError
from laststand.emulator.kafka.api_names import API_KEYS
from laststand.emulator.kafka.connection import connected
from laststand.emulator.kafka.description_calls import describe_cluster

OWNED: Final = "--i-own-this-cluster"

_ANSWERS_WITHIN_S: Final = 5.0
_BOOTSTRAP_MAX: Final = 16
_NEEDED: Final[Mapping[str, int]] = {
    "Produce": 11,
    "Fetch": 16,
    "ListOffsets": 7,
    "Metadata": 12,
    "InitProducerId": 4,
}
"""The versions that our clients speak (``laststand.emulator.kafka.client_calls``): those of Kafka 3.9."""


async def find_cluster(bootstrap: Sequence[str], *, option: str, owned: str | None) -> ExternalCluster:
    """Asks the first of these addresses that answers.

    Args:
        bootstrap: addresses, ``host:port``.
        option: the option in which the user gave them.
        owned: id of the cluster that may be broken at any address; ``None`` allows loopback and private addresses only.

    Raises:
        ConfigError: none answers as Kafka does, or it is not a cluster to be broken.
    """
    if not 0 < len(bootstrap) <= _BOOTSTRAP_MAX:
        raise ConfigError(key=option, value=",".join(bootstrap), expected=f"1 to {_BOOTSTRAP_MAX} addresses")
    await _check_addresses(bootstrap, whose=option, owned=owned)
    problems = []
    for address in bootstrap:
        try:
            async with asyncio.timeout(_ANSWERS_WITHIN_S):
                found = await _ask(address, option=option)
        except (OSError, TimeoutError) as error:
            problems.append(await _problem(address, error))
            continue
        _check_cluster(found, bootstrap, option=option, owned=owned)
        await _check_addresses(found.addresses.values(), whose="a broker's advertised address", owned=owned)
        return found
    raise ConfigError(key=option, value=",".join(bootstrap), expected=f"a cluster: {'; '.join(problems)}")


async def _ask(address: str, *, option: str) -> ExternalCluster:
    async with connected(address) as connection:
        missing = [
            f"{name} up to version {connection.versions.get(API_KEYS[name], 'none')}, needed {version}"
            for name, version in _NEEDED.items()
            if connection.versions.get(API_KEYS[name], -1) < version
        ]
        if missing:
            raise ConfigError(
                key=option,
                value=address,
                expected=f"the APIs of Kafka 3.9, idempotence among them, and this broker has {'; '.join(missing)}",
            )
        word = await describe_cluster(connection, ())
        return ExternalCluster(
            cluster_id=word.cluster_id or "", addresses=word.addresses, features=dict(connection.features)
        )


def _check_cluster(found: ExternalCluster, bootstrap: Sequence[str], *, option: str, owned: str | None) -> None:
    if owned is not None and owned != found.cluster_id:
        raise ConfigError(key=OWNED, value=owned, expected=f"the id of that cluster, which is {found.cluster_id!r}")
    if not found.addresses:
        raise ConfigError(key=option, value=",".join(bootstrap), expected="a cluster whose brokers are alive")


async def _check_addresses(addresses: Iterable[str], *, whose: str, owned: str | None) -> None:
    """Refuses addresses that are not of this machine, or of a private network, unless the user owns the cluster."""
    loop = asyncio.get_running_loop()
    for address in addresses:
        try:
            host, port = host_and_port(address)
            if not host or not 0 < port <= PORT_MAX:
                raise ValueError
            found = await loop.getaddrinfo(host.strip("[]"), port)
        except ValueError:
            raise ConfigError(
                key=whose, value=address, expected=f"host:port, with a port from 1 to {PORT_MAX}"
            ) from None
        except OSError as error:
            raise ConfigError(key=whose, value=address, expected=f"a known host: {error.strerror}") from None
        for *_, place in found:
            ip = ipaddress.ip_address(str(place[0]).partition("%")[0])
            if owned is None and not (ip.is_loopback or ip.is_private):
                raise ConfigError(
                    key=whose,
                    value=address,
                    expected=f"a loopback or private address, and {ip} is neither; {OWNED} CLUSTER_ID allows any",
                )


async def _problem(address: str, error: Exception) -> str:
    """Returns why an address did not answer as Kafka does: its listener may use TLS."""
    if isinstance(error, ConnectionRefusedError):
        return f"nobody listens at {address}"
    if await _speaks_tls(address):
        return f"{address} speaks TLS, and Laststand speaks plaintext only"
    return f"{address} does not answer ApiVersions and Metadata as Kafka does; perhaps it asks for SASL"


async def _speaks_tls(address: str) -> bool:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with contextlib.suppress(OSError, TimeoutError, ValueError):
        async with asyncio.timeout(_ANSWERS_WITHIN_S):
            _, writer = await asyncio.open_connection(*host_and_port(address), ssl=context)
            writer.close()
            return True
    return False
