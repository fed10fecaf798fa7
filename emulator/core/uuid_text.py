"""UUIDs as Kafka prints them: 22 characters of URL-safe base64 without padding (Kafka's ``Uuid``).

Nothing here draws a UUID; whoever wants a random one brings the sixteen bytes.
"""

import base64


def uuid_text(content: bytes) -> str:
    """Returns the text of the sixteen bytes of a UUID (Kafka's ``Uuid.toString``)."""
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def uuid_bytes(text: str) -> bytes:
    """Returns the sixteen bytes of the UUID that Kafka prints like this; the inverse of ``uuid_text``."""
    return base64.urlsafe_b64decode(f"{text}==")
