"""Lifetimes of certificates."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from laststand.emulator.rpc import authority
from laststand.emulator.rpc.certificates import Certificates


def ends_in(path: Path) -> timedelta:
    return x509.load_pem_x509_certificate(path.read_bytes()).not_valid_after_utc - datetime.now(UTC)


@pytest.mark.parametrize(
    ("lifetime", "issued_for"),
    [(timedelta(days=3650), timedelta(days=365)), (timedelta(days=1), timedelta(days=1))],
    ids=["new", "about to end"],
)
def test_certificates_last_a_year_and_no_longer_than_the_authority(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lifetime: timedelta, issued_for: timedelta
) -> None:
    monkeypatch.setattr(authority, "_AUTHORITY_LIFETIME", lifetime)
    folder = tmp_path / "tls"
    authority.certify(folder, ("broker-0",))
    files = Certificates(folder, "broker-0")
    for path, lasts in ((files.authority, lifetime), (files.server, issued_for), (files.client, issued_for)):
        assert lasts - timedelta(hours=1) < ends_in(path) <= lasts
