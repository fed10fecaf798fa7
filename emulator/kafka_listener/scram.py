"""SCRAM, the server's side (RFC 5802, RFC 7677): a password is proved, and neither shown nor stored.

::

    client  n,,n=alice,r=<nonce>
    server  r=<nonce><more>,s=<salt>,i=4096
    client  c=biws,r=<nonce><more>,p=<proof>
    server  v=<signature>
"""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Mapping
from functools import cache
from typing import Final, NamedTuple

ITERATIONS: Final = 4096
_NONCE_BYTES: Final = 18
_SALT_BYTES: Final = 16
_WITHOUT_CHANNEL_BINDING: Final = "n,,"
_DIGESTS: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}


_SALT_SECRET: Final = secrets.token_bytes()
"""Makes salts that differ by user and are the same each time, as those of users who are stored are."""


class ScramError(Exception):
    """The client does not prove that it knows the password, or its message is not a SCRAM message."""


class _Credential(NamedTuple):
    salt: bytes
    stored_key: bytes
    server_key: bytes


class ScramServer:
    """One authentication.

    Args:
        mechanism: ``SCRAM-SHA-256`` or ``SCRAM-SHA-512``.
        passwords: of users.

    Attributes:
        user: the user that the client claims to be, once it has named one.
        is_complete: whether the client has authenticated.
    """

    def __init__(self, mechanism: str, passwords: Mapping[str, str]) -> None:
        self.user = ""
        self.is_complete = False
        self._digest = _DIGESTS[mechanism]
        self._passwords = passwords
        self._credential: _Credential | None = None
        self._nonce = ""
        self._exchanged = ""

    def respond(self, message: bytes) -> bytes:
        """Returns the answer to the client's next message.

        Raises:
            ScramError: the client failed.
        """
        try:
            text = message.decode()
            return self._first(text) if self._credential is None else self._final(text)
        except (UnicodeDecodeError, ValueError, KeyError) as error:
            raise ScramError(f"no SCRAM message: {error}") from None

    def _first(self, text: str) -> bytes:
        if not text.startswith(_WITHOUT_CHANNEL_BINDING):
            raise ScramError("channel binding, or another authorization id, is not supported")
        bare = text.removeprefix(_WITHOUT_CHANNEL_BINDING)
        fields = _fields(bare)
        self.user = fields["n"].replace("=2C", ",").replace("=3D", "=")
        self._nonce = fields["r"] + base64.b64encode(secrets.token_bytes(_NONCE_BYTES)).decode()
        password = self._passwords.get(self.user)
        # An unknown user is asked for a proof, too, that nobody can give.
        self._credential = (
            _Credential(_salt(self._digest, self.user), secrets.token_bytes(), secrets.token_bytes())
            if password is None
            else _credential(self._digest, self.user, password)
        )
        salt = base64.b64encode(self._credential.salt).decode()
        answer = f"r={self._nonce},s={salt},i={ITERATIONS}"
        self._exchanged = f"{bare},{answer}"
        return answer.encode()

    def _final(self, text: str) -> bytes:
        assert self._credential is not None, "the first message made it"
        bare, _, proof = text.rpartition(",p=")
        fields = _fields(bare)
        expected = base64.b64encode(_WITHOUT_CHANNEL_BINDING.encode()).decode()
        if fields["r"] != self._nonce or fields["c"] != expected:
            raise ScramError("another nonce or channel binding than before")
        exchanged = f"{self._exchanged},{bare}".encode()
        signature = self._hmac(self._credential.stored_key, exchanged)
        client_key = bytes(a ^ b for a, b in zip(base64.b64decode(proof), signature, strict=True))
        is_proved = hmac.compare_digest(hashlib.new(self._digest, client_key).digest(), self._credential.stored_key)
        if not is_proved or self.user not in self._passwords:
            raise ScramError("unknown user or wrong password")
        self.is_complete = True
        return b"v=" + base64.b64encode(self._hmac(self._credential.server_key, exchanged))

    def _hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, self._digest)


def _salt(digest: str, user: str) -> bytes:
    return hmac.digest(_SALT_SECRET, f"{digest} {user}".encode(), "sha256")[:_SALT_BYTES]


@cache
def _credential(digest: str, user: str, password: str) -> _Credential:
    """Returns the stored form of a user's password; computed once, as that takes milliseconds."""
    salt = _salt(digest, user)
    salted = hashlib.pbkdf2_hmac(digest, password.encode(), salt, ITERATIONS)
    client_key = hmac.digest(salted, b"Client Key", digest)
    stored_key = hashlib.new(digest, client_key).digest()
    return _Credential(salt, stored_key, hmac.digest(salted, b"Server Key", digest))


def _fields(text: str) -> dict[str, str]:
    return {part[0]: part[2:] for part in text.split(",") if part[1:2] == "="}
