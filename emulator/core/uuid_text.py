"""UUIDs as Kafka prints them: 22 characters of URL-safe base64 without padding (Kafka's ``Uuid``).

This module does not draw UUIDs; the caller supplies the sixteen bytes.
"""

import base64
import hashlib
from typing import Final

_SIZE: Final = 16


def uuid_text(content: bytes) -> str:
    """Returns the text of the sixteen bytes of a UUID (Kafka's ``Uuid.toString``)."""
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def uuid_bytes(text: str) -> bytes:
    """Returns the sixteen bytes of the UUID that Kafka prints like this; the inverse of ``uuid_text``."""
    return base64.urlsafe_b64decode(f"{text}==")


def uuid_for(text: str) -> tuple[bytes, bool]:
    """Returns a UUID's bytes and true; for a text that is not a UUID, bytes derived from the text and false."""
    try:
        content = uuid_bytes(text)
    except ValueError:
        content = b""
    if len(content) == _SIZE and uuid_text(content) == text:
        return content, True
    return hashlib.blake2b(text.encode(), digest_size=_SIZE).digest(), False
