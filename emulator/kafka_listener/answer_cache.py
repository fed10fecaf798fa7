"""Answers that depend only on a broker's metadata, cached as bytes until the metadata changes.

After a change of leaders every client asks for the whole metadata at once.
"""

from collections.abc import Hashable
from typing import Final

from laststand.emulator.core.types import MetadataOffset
from laststand.emulator.kafka_listener.message_codec import Buffers

_ANSWERS_MAX: Final = 64


class AnswerCache:
    """Encoded answers by request."""

    def __init__(self) -> None:
        self._offset: MetadataOffset | None = None
        self._answers: dict[Hashable, Buffers] = {}

    def get(self, offset: MetadataOffset, request: Hashable) -> Buffers | None:
        """Returns the answer to a request, if it was given before with the same metadata.

        Args:
            offset: end of the metadata log that the broker has applied.
            request: everything that the answer depends on besides metadata.
        """
        if offset != self._offset:
            self._answers.clear()
            self._offset = offset
        return self._answers.get(request)

    def store(self, offset: MetadataOffset, request: Hashable, answer: Buffers) -> None:
        """Stores an answer that was made after ``get``; above a limit the oldest one is dropped."""
        if offset != self._offset:
            return
        if len(self._answers) >= _ANSWERS_MAX:
            del self._answers[next(iter(self._answers))]
        self._answers[request] = answer
