"""Certificates of a throw-away authority, made with ``openssl``."""

import subprocess
from pathlib import Path


class Authority:
    """An authority that lives in a folder.

    Args:
        folder: for its files.
        name: of it.

    Attributes:
        certificate: by which others trust it.
    """

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self._folder = folder
        self._name = name
        self.certificate = folder / f"{name}.pem"
        self._key = folder / f"{name}.key"
        _openssl("req", "-x509", *_NEW_KEY, "-keyout", self._key, "-out", self.certificate, "-subj", f"/CN={name}")

    def issue(self, name: str, *, days: int = 2) -> Path:
        """Returns a PEM file with a certificate for 127.0.0.1 and its key; one of -1 days is over."""
        key, request, extensions = (self._folder / f"{self._name}-{name}.{end}" for end in ("key", "csr", "ext"))
        extensions.write_text("subjectAltName=IP:127.0.0.1\n")
        _openssl("req", *_NEW_KEY, "-keyout", key, "-out", request, "-subj", f"/O=example/CN={name}")
        certificate = self._folder / f"{self._name}-{name}.pem"
        signed_by = ("-CA", self.certificate, "-CAkey", self._key, "-CAcreateserial", "-extfile", extensions)
        _openssl("x509", "-req", "-in", request, "-out", certificate, "-days", str(days), *signed_by)
        certificate.write_text(certificate.read_text() + key.read_text())
        return certificate


_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


def _openssl(*arguments: str | Path) -> None:
    subprocess.run(("openssl", *arguments), check=True, capture_output=True)
