"""UUIDs as Kafka's ``Uuid.toString`` prints them."""

import pytest

from laststand.emulator.core.uuid_text import uuid_bytes, uuid_text


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (bytes(16), "AAAAAAAAAAAAAAAAAAAAAA"),  # Uuid.ZERO_UUID
        ((1).to_bytes(16), "AAAAAAAAAAAAAAAAAAAAAQ"),  # Uuid.METADATA_TOPIC_ID
        (bytes([0xFB, 0xFF]) * 8, "-__7__v_-__7__v_-__7_w"),  # the alphabet is that of URLs
        (bytes(range(0x10, 0x20)), "EBESExQVFhcYGRobHB0eHw"),
    ],
)
def test_a_uuid_has_22_characters_without_padding(content: bytes, text: str) -> None:
    assert uuid_text(content) == text
    assert uuid_bytes(text) == content
