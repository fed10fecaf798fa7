"""A request that waits for its answer."""

from typing import NamedTuple

from laststand.emulator.core import effects
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.group_messages import CoordinatorResponse
from laststand.emulator.core.types import CauseId, RequestId


class Caller(NamedTuple):
    """The sender of a request; it gets one answer."""

    request_id: RequestId
    cause_id: CauseId

    def answer(self, turn: Turn, response: CoordinatorResponse) -> None:
        """Answers the request."""
        turn.send(effects.SendResponse(request_id=self.request_id, response=response, cause_id=self.cause_id))
