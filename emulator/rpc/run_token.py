"""The secret of one cluster, by which its processes know each other.

Whoever starts a cluster draws a token, and hands it to nodes, clients and commands in a file that only its owner may
read. Each call carries it in gRPC metadata (``laststand-token``), and a server answers UNAUTHENTICATED to any other
call, before it looks at the method or reads a message. It is valid while that cluster runs, and never printed.
"""

import hmac
import os
import secrets
import ssl
from collections.abc import Iterable
from pathlib import Path
from typing import Final, Self

from laststand.emulator.core.errors import ConfigError
from laststand.emulator.rpc.certificates import HARNESS, Certificates

METADATA_KEY: Final = "laststand-token"

_BYTES: Final = 32
_DIGITS: Final = frozenset("0123456789abcdef")
_OTHERS: Final = 0o077
"""Mode bits of everybody but a file's owner."""

LINE_LENGTH: Final = 2 * _BYTES + 1
"""The length of ``RunToken.line``."""


class RunToken:
    """A token; its text shows up only in files and on the wire.

    Args:
        text: 64 hexadecimal digits.
        certificates: presented by its holder together with the token; ``None`` without TLS between nodes.

    Attributes:
        certificates: the given ones.
    """

    __slots__ = ("_text", "certificates")

    def __init__(self, text: str, certificates: Certificates | None = None) -> None:
        self._text = text
        self.certificates = certificates

    def __repr__(self) -> str:
        """Hides the token."""
        return "RunToken(...)"

    @classmethod
    def draw(cls) -> Self:
        """Returns a new token."""
        return cls(secrets.token_hex(_BYTES))

    @classmethod
    def read(cls, path: Path | str, *, name: str = HARNESS) -> Self:
        """Returns the token in a file.

        Args:
            path: of the file.
            name: of the process that has certificates, where nodes speak TLS to each other.

        Raises:
            ConfigError: the file cannot be read, holds no token, or can be read by others than its owner.
        """
        try:
            with open(path, "rb") as file:
                if os.fstat(file.fileno()).st_mode & _OTHERS:
                    raise ValueError("others can read it, too")
                return cls(_parsed(file.read(LINE_LENGTH)), Certificates.beside(path, name))
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            expected = f"the file of the cluster's token, which only its owner can read ({reason})"
            raise ConfigError(key="token", value=str(path), expected=expected) from None

    @classmethod
    def parse(cls, content: bytes) -> Self:
        """Returns the token that a file holds.

        Raises:
            ValueError: the file has no token.
        """
        return cls(_parsed(content))

    @classmethod
    def read_or_draw(cls, path: Path) -> Self:
        """Returns the token in a file, which the first of several processes makes.

        Raises:
            ConfigError: the file can neither be read nor made.
        """
        drawn = cls.draw()
        try:
            drawn._write(path, replace=False)
        except FileExistsError:
            return cls.read(path)
        except OSError as error:
            raise ConfigError(key="token", value=str(path), expected=f"a file to be made ({error.strerror})") from None
        return cls(drawn.text, Certificates.beside(path, HARNESS))

    def write(self, path: Path) -> None:
        """Writes the token into a file of mode 0600, and replaces an existing one.

        Raises:
            OSError: the file cannot be created.
        """
        self._write(path, replace=True)

    def _write(self, path: Path, *, replace: bool) -> None:
        fresh = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(self._text)
        try:
            if replace:
                fresh.replace(path)
            else:
                os.link(fresh, path)
        finally:
            fresh.unlink(missing_ok=True)

    @property
    def text(self) -> str:
        """The token itself."""
        return self._text

    @property
    def dialled_context(self) -> ssl.SSLContext | None:
        """Returns the TLS context of connections that its holder accepts without gRPC; ``None`` without TLS."""
        return None if self.certificates is None else self.certificates.dialled_context()

    @property
    def dialling_context(self) -> ssl.SSLContext | None:
        """Returns the TLS context of connections that its holder opens without gRPC; ``None`` without TLS."""
        return None if self.certificates is None else self.certificates.dialling_context()

    @property
    def line(self) -> bytes:
        """The token as the first line of a connection, ``LINE_LENGTH`` bytes."""
        return f"{self._text}\n".encode()

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        """The metadata that each call carries."""
        return ((METADATA_KEY, self._text),)

    def matches(self, shown: str | bytes | None) -> bool:
        """Returns whether a caller presented this token; takes the same time whatever it presented."""
        given = shown.encode() if isinstance(shown, str) else shown or b""
        return hmac.compare_digest(given, self._text.encode())

    def is_in(self, metadata: Iterable[tuple[str, str | bytes]]) -> bool:
        """Returns whether the metadata of a call shows this token."""
        return self.matches(next((value for key, value in metadata if key == METADATA_KEY), None))


def _parsed(content: bytes) -> str:
    text = content.decode("ascii", errors="replace").strip()
    if len(text) != 2 * _BYTES or not set(text) <= _DIGITS:
        raise ValueError("it holds no token")
    return text
