"""One input on its way through the controller: its records, their events, and the answers.

``commit`` applies a decision at once, so that the next one sees it; the record, its events and the
answers leave with the turn.
"""

from collections.abc import Sequence

from laststand.emulator.core import effects, events, messages, records
from laststand.emulator.core.controller.committed_events import committed_events
from laststand.emulator.core.controller.decision import Decision, PartitionCause
from laststand.emulator.core.controller.invariants import check_delta
from laststand.emulator.core.controller.view import ClusterView
from laststand.emulator.core.types import CauseId, RequestId


class ControllerTurn:
    """The results so far of one input.

    Attributes:
        records: committed, in order, from ``base_offset`` on.
        events: to be written once the records are durable.
        responses: to be sent then.
        requests: to be sent then, too.
        wants_draw: whether the number that picks unclean leaders was used.
    """

    def __init__(self, view: ClusterView, *, cause_id: CauseId, now_ms: int) -> None:
        self.cause_id = cause_id
        self.base_offset = view.image.next_offset
        self.now_ms = now_ms
        self.records: list[records.Record] = []
        self.events: list[events.ControllerEvent] = []
        self.responses: list[effects.SendResponse] = []
        self.requests: list[effects.SendRequest] = []
        self.wants_draw = False
        self._view = view

    def respond(self, request_id: RequestId, response: messages.Response) -> None:
        """Answers the request that the turn is about."""
        self.responses.append(effects.SendResponse(request_id=request_id, response=response, cause_id=self.cause_id))

    def commit(self, decisions: Sequence[Decision]) -> None:
        """Replays decisions, one after the other.

        Raises:
            InvariantError: a record breaks what must hold of every record.
        """
        image = self._view.image
        for decision in decisions:
            offset, brokers = image.next_offset, dict(image.brokers)
            image.replay(decision.record, offset=offset)
            delta = image.pop_delta()
            check_delta(delta, brokers_before=brokers, brokers_after=image.brokers)
            self.records.append(decision.record)
            self.wants_draw = self.wants_draw or _used_draw(decision)
            self.events += committed_events(
                decision, offset=offset, delta=delta, view=self._view, cause_id=self.cause_id
            )


def _used_draw(decision: Decision) -> bool:
    cause = decision.cause
    return isinstance(cause, PartitionCause) and cause.unclean is not None and cause.unclean.draw is not None
