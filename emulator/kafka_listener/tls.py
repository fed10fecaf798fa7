"""TLS on the listener: certificates as PEM files, and the principals of clients' certificates.

A handshake that fails is an event with the reason; the client gets TLS's own alert. Kafka's ``SslEngineFactory``
with ``ssl.keystore.type=PEM``.
"""

import asyncio
import re
import ssl
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, cast

from laststand.emulator.core.errors import ConfigError
from laststand.emulator.core.principal_rules import PrincipalRules
from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.requester import ANONYMOUS
from laststand.emulator.kafka_listener.connection import KafkaConnection
from laststand.emulator.rpc.certificates import load_authorities, load_keystore

_HANDSHAKE_S: Final = 10.0
_CLIENT_AUTH: Final = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
_SHORT: Final = {
    "commonName": "CN",
    "organizationalUnitName": "OU",
    "organizationName": "O",
    "localityName": "L",
    "streetAddress": "STREET",
    "domainComponent": "DC",
    "userId": "UID",
    "stateOrProvinceName": "ST",
    "countryName": "C",
}
_SPECIAL: Final = re.compile(r'([,+"\\<>;])')


def subject_of(certificate: "ssl._PeerCertRetDictType") -> str:
    """Returns a certificate's subject as RFC 2253 writes it: ``CN=alice,O=example``."""
    parts = cast(tuple[tuple[tuple[str, str], ...], ...], certificate.get("subject", ()))
    names = ("+".join(_attribute(*each) for each in part) for part in reversed(parts))
    return ",".join(names)


def _attribute(kind: str, value: str) -> str:
    escaped = _SPECIAL.sub(r"\\\1", value)
    return f"{_SHORT.get(kind, kind)}={escaped}"


def server_context(properties: NodeProperties) -> ssl.SSLContext | None:
    """Returns the listener's TLS context; ``None`` without TLS.

    Raises:
        ConfigError: a file cannot be read, has no certificate, or no key that belongs to it.
    """
    if not properties.has_tls:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    load_keystore(context, properties.ssl_keystore_location)
    context.verify_mode = _CLIENT_AUTH[properties.ssl_client_auth]
    if context.verify_mode is not ssl.CERT_NONE:
        load_authorities(context, properties.ssl_truststore_location)
    return context


class ListenerTls:
    """TLS of a listener: certificates that are replaced are shown from the next connection on.

    Args:
        context: made of the first certificates.
        properties: of the node.
    """

    def __init__(self, context: ssl.SSLContext, properties: NodeProperties) -> None:
        self._context = context
        self._properties = properties
        self._path = Path(properties.ssl_keystore_location)
        self._version = self._path.stat().st_mtime_ns

    def context(self) -> ssl.SSLContext:
        """Returns the context for the next client; the previous one if the new certificate cannot be read."""
        with suppress(FileNotFoundError, ConfigError):
            version = self._path.stat().st_mtime_ns
            # A context keeps a certificate whose key it refuses: it takes a new one.
            if version != self._version and (context := server_context(self._properties)) is not None:
                self._context, self._version = context, version
        return self._context


class TlsGate(asyncio.Protocol):
    """Shakes hands with a client, and hands the connection over.

    Args:
        context: of the listener.
        rules: the rules that convert subjects to principals.
        make: makes the connection after a successful handshake.
        on_failure: called with the client's address and the reason.
    """

    def __init__(
        self,
        context: ssl.SSLContext,
        rules: PrincipalRules,
        make: Callable[[], KafkaConnection],
        on_failure: Callable[[str, str], None],
    ) -> None:
        self._context = context
        self._rules = rules
        self._make = make
        self._on_failure = on_failure
        self._early = b""
        self._is_lost = False
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begins the handshake."""
        self._task = asyncio.get_running_loop().create_task(self._open(cast(asyncio.Transport, transport)))

    def data_received(self, data: bytes) -> None:
        """Keeps bytes that arrive directly after the handshake."""
        self._early += data

    def connection_lost(self, _: Exception | None) -> None:
        """Notes that the client has closed the connection, which may be before the connection is handed over."""
        self._is_lost = True

    async def _open(self, transport: asyncio.Transport) -> None:
        host, port, *_ = transport.get_extra_info("peername") or ("?", 0)
        try:
            tls = await asyncio.get_running_loop().start_tls(
                transport, self, self._context, server_side=True, ssl_handshake_timeout=_HANDSHAKE_S
            )
            if tls is None or self._is_lost:
                return  # a client that has left did not fail
            certificate = tls.get_extra_info("ssl_object").getpeercert()
            principal = self._rules.principal(subject_of(certificate)) if certificate else ANONYMOUS
        except (OSError, ValueError) as error:
            self._on_failure(f"{host}:{port}", _reason(error))
            transport.abort()
            return
        connection = self._make()
        connection.principal = principal
        connection.is_secure = True
        tls.set_protocol(connection)
        connection.connection_made(tls)
        if self._early:
            connection.data_received(self._early)


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    if isinstance(error, ssl.SSLError) and error.reason:
        return error.reason.lower().replace("_", " ")
    return str(error) or type(error).__name__
