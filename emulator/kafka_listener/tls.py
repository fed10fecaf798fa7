"""TLS on the listener: certificates as PEM files, and the principals of those whom clients show.

A handshake that fails is an event with the reason; the client is told what TLS tells it. Kafka's ``SslEngineFactory``
with ``ssl.keystore.type=PEM``, and ``SslPrincipalMapper``.
"""

import asyncio
import re
import ssl
from collections.abc import Callable
from functools import partial
from typing import Final, cast

from laststand.emulator.core.errors import ConfigError
from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.requester import ANONYMOUS
from laststand.emulator.kafka_listener.connection import KafkaConnection

_RULES: Final = "ssl.principal.mapping.rules"
_DEFAULT: Final = "DEFAULT"
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
_RULE: Final = re.compile(r"\s*(?:(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?))\s*(?:,|$)")
_GROUP: Final = re.compile(r"\$(\d)")
_SPECIAL: Final = re.compile(r'([,+"\\<>;])')


class PrincipalRules:
    """The rules of ``ssl.principal.mapping.rules``: the first that fits a subject makes the principal's name of it.

    Args:
        text: of the property.

    Raises:
        ConfigError: it has no such rules.
    """

    def __init__(self, text: str) -> None:
        self._rules: list[tuple[re.Pattern[str] | None, str, str]] = []
        text = text.strip() or _DEFAULT
        position = 0
        while position < len(text):
            found = _RULE.match(text, position)
            if found is None:
                raise self._error(text, "")
            position = found.end()
            self._rules.append((self._pattern(text, found), found[3] or "", found[4] or ""))

    @staticmethod
    def _error(text: str, reason: str) -> ConfigError:
        return ConfigError(key=_RULES, value=text, expected=f"DEFAULT, RULE:PATTERN/NAME/{reason}")

    def _pattern(self, text: str, rule: re.Match[str]) -> re.Pattern[str] | None:
        """Returns the pattern of a rule; ``None`` for the one that fits every subject."""
        if rule[1]:
            return None
        try:
            pattern = re.compile(rule[2])
        except re.error as error:
            raise self._error(text, f" ({error})") from None
        unknown = [group for group in _GROUP.findall(rule[3]) if int(group) > pattern.groups]
        if unknown:
            raise self._error(text, f" (the pattern has no group {unknown[0]})")
        return pattern

    def principal(self, subject: str) -> str:
        """Returns the principal of a subject.

        Raises:
            ValueError: no rule fits.
        """
        for pattern, name, case in self._rules:
            if pattern is None:
                return f"User:{subject}"
            found = pattern.fullmatch(subject)
            if found is not None:
                groups = (subject, *found.groups(""))
                mapped = _GROUP.sub(lambda group: groups[int(group[1])], name)  # noqa: B023  # called at once
                return f"User:{mapped.lower() if case == 'L' else mapped.upper() if case == 'U' else mapped}"
        raise ValueError(f"no rule of {_RULES} fits {subject!r}")


def subject_of(certificate: "ssl._PeerCertRetDictType") -> str:
    """Returns a certificate's subject as RFC 2253 writes it: ``CN=alice,O=example``."""
    parts = cast(tuple[tuple[tuple[str, str], ...], ...], certificate.get("subject", ()))
    names = ("+".join(_attribute(*each) for each in part) for part in reversed(parts))
    return ",".join(names)


def _attribute(kind: str, value: str) -> str:
    escaped = _SPECIAL.sub(r"\\\1", value)
    return f"{_SHORT.get(kind, kind)}={escaped}"


def server_context(properties: NodeProperties) -> ssl.SSLContext | None:
    """Returns what the listener speaks TLS with; ``None`` without TLS.

    Raises:
        ConfigError: a file cannot be read, holds no certificate, or no key that belongs to it.
    """
    if not properties.has_tls:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    load_keystore = partial(context.load_cert_chain, password=_no_password)
    _load("ssl.keystore.location", properties.ssl_keystore_location, load_keystore)
    context.verify_mode = _CLIENT_AUTH[properties.ssl_client_auth]
    if context.verify_mode is not ssl.CERT_NONE:
        _load("ssl.truststore.location", properties.ssl_truststore_location, context.load_verify_locations)
    return context


def _no_password() -> str:
    raise OSError("its key is encrypted")  # else OpenSSL asks for the password on the terminal


def _load(key: str, path: str, load: Callable[[str], object]) -> None:
    try:
        load(path)
    except (OSError, ssl.SSLError) as error:
        reason = getattr(error, "reason", None) or error.strerror or str(error)
        expected = "a PEM file with a certificate, and for a keystore its key"
        raise ConfigError(key=key, value=path, expected=f"{expected} ({reason})") from None


class TlsGate(asyncio.Protocol):
    """Shakes hands with a client, and hands the connection over.

    Args:
        context: of the listener.
        rules: by which subjects become principals.
        make: makes the connection, once the client is let in.
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
        """Keeps what comes right behind the handshake."""
        self._early += data

    def connection_lost(self, _: Exception | None) -> None:
        """Notes that the client has gone, which may be before the connection is handed over."""
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
