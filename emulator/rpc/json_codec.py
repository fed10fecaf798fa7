"""Bytes of the messages between the harness and a node at the node's own port."""

from typing import Generic, TypeVar

import msgspec

_Form = TypeVar("_Form")


class JsonCodec(Generic[_Form]):
    """One form of message, as JSON."""

    def __init__(self, form: type[_Form]) -> None:
        self._encoder = msgspec.json.Encoder()
        self._decoder = msgspec.json.Decoder(form)

    def encode(self, message: _Form) -> bytes:
        """Returns a message's bytes."""
        return self._encoder.encode(message)

    def decode(self, payload: bytes) -> _Form:
        """Inverse of ``encode``.

        Raises:
            msgspec.DecodeError: the bytes are no such message.
        """
        return self._decoder.decode(payload)
