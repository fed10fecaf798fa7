"""A process's certificates, if nodes use TLS between each other (``security.inter.broker.protocol=SSL``).

They are beside the token, in a folder that only its owner can enter::

    tls/authority.pem        the certificate of the cluster's own authority, whom everybody trusts
    tls/authority.key        signs the others (``rpc.authority``)
    tls/broker-1.pem         shown by a broker to those who dial it, with its key
    tls/broker-1-client.pem  shown by it to those whom it dials, with its key

Authorities usually issue a certificate for one of both uses. Replaced files are read for the next connection; open
connections continue.
"""

import ssl
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, Generic, TypeVar

import grpc

from laststand.emulator.core.errors import ConfigError

FOLDER: Final = "tls"
HARNESS: Final = "harness"
HARNESS_SUBJECT: Final = f"CN={HARNESS}"
"""Of the harness, and of commands: what they ask is past all lists."""

_EXPECTED: Final = "a PEM file with a certificate, and for a keystore its key"


class Certificates:
    """The certificates of one process.

    Args:
        folder: of all certificates of the cluster.
        name: of the process, as in its principal: ``broker-1``.

    Attributes:
        authority: file of the authority's certificate.
        server: file of the certificate for connections that the process accepts.
        client: file of the certificate for connections that the process opens.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.authority = folder / "authority.pem"
        self.server = folder / f"{name}.pem"
        self.client = folder / f"{name}-client.pem"
        self._client_version = 0

    @classmethod
    def beside(cls, token_file: Path | str, name: str) -> "Certificates | None":
        """Returns a process's certificates in the cluster with a token file; ``None`` without TLS."""
        folder = Path(token_file).parent / FOLDER
        return cls(folder, name) if folder.exists() else None

    @property
    def properties(self) -> dict[str, str]:
        """The properties of a node with these certificates, by Kafka's names, also for its listener of clients."""
        return {
            "ssl.keystore.location": str(self.server),
            "ssl.truststore.location": str(self.authority),
            "ssl.principal.mapping.rules": "RULE:^CN=([^,]*)$/$1/,DEFAULT",
        }

    @property
    def client_properties(self) -> dict[str, str]:
        """The properties of a Kafka client with these certificates."""
        return {
            "security.protocol": "SSL",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.client),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority),
        }

    def check(self) -> None:
        """Reads all files once.

        Raises:
            ConfigError: a file cannot be read, or has a key that does not belong to its certificate.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        load_authorities(context, str(self.authority))
        for path in (self.server, self.client):
            load_keystore(context, str(path))

    @property
    def client_version(self) -> int:
        """A value that changes whenever the process's client certificate is replaced."""
        with suppress(FileNotFoundError):  # a cluster that has ended leaves none
            self._client_version = self.client.stat().st_mtime_ns
        return self._client_version

    def channel_credentials(self) -> grpc.ChannelCredentials:
        """Returns the credentials of new channels that the process opens."""
        pair = self.client.read_bytes()
        return grpc.ssl_channel_credentials(self.authority.read_bytes(), private_key=pair, certificate_chain=pair)

    def server_credentials(self) -> grpc.ServerCredentials:
        """Returns the credentials of the process's server: every client has to present a certificate."""
        return grpc.dynamic_ssl_server_credentials(
            self._server_configuration(),
            _Renewals(self.server, self._server_configuration),  # type: ignore[arg-type]  # the stubs lack None
            require_client_authentication=True,
        )

    def _server_configuration(self) -> grpc.ServerCertificateConfiguration:
        pair = self.server.read_bytes()
        return grpc.ssl_server_certificate_configuration([(pair, pair)], root_certificates=self.authority.read_bytes())

    def dialling_context(self) -> ssl.SSLContext:
        """Returns the TLS context of connections without gRPC that the process opens, whatever the server's name."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.set_alpn_protocols(["h2"])  # gRPC refuses others
        load_authorities(context, str(self.authority))
        load_keystore(context, str(self.client))
        return context

    def dialled_context(self) -> ssl.SSLContext:
        """Returns the TLS context of connections that the process accepts without gRPC; it follows renewals."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.verify_mode = ssl.CERT_REQUIRED
        load_authorities(context, str(self.authority))
        load_keystore(context, str(self.server))
        renewals, shown = _Renewals(self.server, self.dialled_context), context

        def show_newest(connection: ssl.SSLObject, _name: str, _: ssl.SSLContext) -> None:
            nonlocal shown
            shown = renewals() or shown
            connection.context = shown

        context.sni_callback = show_newest
        return context


_ConfigurationT = TypeVar("_ConfigurationT")


class _Renewals(Generic[_ConfigurationT]):
    """Before each handshake, returns a configuration if the certificate was replaced since the last one."""

    def __init__(self, path: Path, read: Callable[[], _ConfigurationT]) -> None:
        self._path = path
        self._read = read
        self._version = path.stat().st_mtime_ns

    def __call__(self) -> _ConfigurationT | None:
        version = self._path.stat().st_mtime_ns
        if version == self._version:
            return None
        self._version = version
        return self._read()


def load_keystore(context: ssl.SSLContext, path: str) -> None:
    """Makes a TLS context present the certificate in a file, which also has its key.

    Raises:
        ConfigError: it cannot be read, has no certificate, or no key that belongs to it.
    """
    _load("ssl.keystore.location", path, partial(context.load_cert_chain, password=_no_password))


def load_authorities(context: ssl.SSLContext, path: str) -> None:
    """Makes a TLS context trust the authorities in a file.

    Raises:
        ConfigError: the file cannot be read, or has no certificate.
    """
    _load("ssl.truststore.location", path, context.load_verify_locations)


def _load(key: str, path: str, load: Callable[[str], object]) -> None:
    try:
        load(path)
    except (OSError, ssl.SSLError) as error:
        reason = getattr(error, "reason", None) or error.strerror or str(error)
        raise ConfigError(key=key, value=path, expected=f"{_EXPECTED} ({reason})") from None


def _no_password() -> str:
    raise OSError("its key is encrypted")  # else OpenSSL asks for the password on the terminal
