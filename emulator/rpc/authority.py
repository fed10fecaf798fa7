"""The authority of one cluster: it issues the certificates of nodes and clients, and ends with the cluster's token.

Certificates have their owner as subject (``CN=broker-1``), and as an alternative name, by which dialling processes
identify a node whatever its address. The other alternative names are the hosts at which clients reach it.
"""

import ipaddress
import os
import secrets
import shutil
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from laststand.emulator.core.errors import ConfigError
from laststand.emulator.rpc.certificates import Certificates

FILES: Final = ("authority.pem", "authority.key")
"""Of an authority, in the folder of all certificates."""

LOCAL_HOSTS: Final = ("localhost", "127.0.0.1")

_NAME: Final = "laststand"
_LIFETIME: Final = timedelta(days=365)
_AUTHORITY_LIFETIME: Final = timedelta(days=3650)
_CLOCKS_DIFFER_BY: Final = timedelta(minutes=5)
_EXPIRED_FOR: Final = timedelta(minutes=1)


class Authority:
    """A certificate authority whose certificate and key are in a folder.

    Args:
        folder: for its certificate and key, and for the certificates that it issues.
        certificate: file of its certificate.
        key: file of its key.
    """

    def __init__(self, folder: Path, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
        self._folder = folder
        self._certificate = certificate
        self._key = key

    @classmethod
    def read_or_make(cls, folder: Path) -> Self:
        """Returns the authority of a folder, which the first of several processes makes.

        Raises:
            ConfigError: the folder can neither be read nor made.
        """
        try:
            if not folder.exists():
                _make(folder)
            return cls._read(folder)
        except (OSError, ValueError) as error:
            raise ConfigError(key="tls", value=str(folder), expected=f"an authority's folder ({error})") from None

    @classmethod
    def _read(cls, folder: Path) -> Self:
        certificate = x509.load_pem_x509_certificate((folder / "authority.pem").read_bytes())
        key = load_pem_private_key((folder / "authority.key").read_bytes(), password=None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise ValueError("a key of another kind")
        return cls(folder, certificate, key)

    def issue(self, name: str, *, hosts: Iterable[str] = LOCAL_HOSTS) -> None:
        """Writes new certificates of a process, replacing existing ones; none outlives the authority.

        Args:
            name: of the process.
            hosts: names and addresses at which the process is reached.
        """
        files, now = Certificates(self._folder, name), datetime.now(UTC)
        names = [_general_name(host) for host in (name, *hosts)]
        for path, usage in (
            (files.server, ExtendedKeyUsageOID.SERVER_AUTH),
            (files.client, ExtendedKeyUsageOID.CLIENT_AUTH),
        ):
            self._write(path, name, names, usage, until=min(now + _LIFETIME, self._certificate.not_valid_after_utc))

    def issue_expired(self, name: str) -> None:
        """Writes an expired client certificate for a process."""
        path, until = Certificates(self._folder, name).client, datetime.now(UTC) - _EXPIRED_FOR
        self._write(path, name, [x509.DNSName(name)], ExtendedKeyUsageOID.CLIENT_AUTH, until=until)

    def _write(
        self,
        path: Path,
        name: str,
        names: Iterable[x509.GeneralName],
        usage: x509.ObjectIdentifier,
        *,
        until: datetime,
    ) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = (
            _builder(name, key, issuer=self._certificate.subject, until=until)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        replace_file(path, certificate.public_bytes(Encoding.PEM) + _pem(key))


def certify(folder: Path, names: Iterable[str], *, hosts: Iterable[str] = LOCAL_HOSTS) -> None:
    """Writes new certificates of several processes, issued by the authority of a folder, created if missing.

    Args:
        folder: of the authority.
        names: of the processes.
        hosts: names and addresses at which each of them is reached.

    Raises:
        ConfigError: the folder can neither be read nor made.
    """
    authority = Authority.read_or_make(folder)
    for name in names:
        authority.issue(name, hosts=hosts)


def _make(folder: Path) -> None:
    """Creates a folder with an authority in it, unless another process created it meanwhile."""
    fresh = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}")
    fresh.mkdir(mode=0o700)
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = (
        _builder(_NAME, key, issuer=_subject(_NAME), until=datetime.now(UTC) + _AUTHORITY_LIFETIME)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    replace_file(fresh / "authority.key", _pem(key))
    replace_file(fresh / "authority.pem", certificate.public_bytes(Encoding.PEM))
    try:
        fresh.rename(folder)
    except OSError:
        shutil.rmtree(fresh)
        if not folder.exists():
            raise


def _builder(
    name: str, key: ec.EllipticCurvePrivateKey, *, issuer: x509.Name, until: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(_subject(name))
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(min(datetime.now(UTC), until) - _CLOCKS_DIFFER_BY)
        .not_valid_after(until)
    )


def _subject(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def replace_file(path: Path, content: bytes) -> None:
    """Writes a file of mode 0600, and replaces an existing one."""
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
    fresh.replace(path)
