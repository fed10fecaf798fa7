"""A request that waits for its answer."""

from typing import NamedTuple, Protocol

from laststand.emulator.core import effects
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.messages import Response
from laststand.emulator.core.types import CauseId, RequestId


class Answerable(Protocol):
    """An object that can be given the answer to a request."""

    def answer(self, turn: Turn, response: Response) -> None:
        """Answers the request."""


class Caller(NamedTuple):
    """The sender of a request; it gets one answer."""

    request_id: RequestId
    cause_id: CauseId

    def answer(self, turn: Turn, response: Response) -> None:
        """Answers the request."""
        turn.send(effects.SendResponse(request_id=self.request_id, response=response, cause_id=self.cause_id))
