"""The requests that the core has yet to answer, by request id."""

from itertools import count

from laststand.emulator.core.types import RequestId
from laststand.emulator.rpc.inbound import Responder


class RequestTable:
    """Numbers requests, and finds the requester of an answer.

    Bounded by the transport: each stream stops reading at a number of unanswered requests, and a unary request is
    given up by its caller's deadline at the latest, after which its answer is dropped.
    """

    def __init__(self) -> None:
        self._numbers = count()
        self._responders: dict[RequestId, Responder] = {}

    def add(self, responder: Responder) -> RequestId:
        """Returns the number of a request that waits for its answer."""
        request_id = RequestId(next(self._numbers))
        self._responders[request_id] = responder
        return request_id

    def pop(self, request_id: RequestId) -> Responder:
        """Returns the way back and forgets it: a request is answered once.

        Raises:
            KeyError: the request was answered before.
        """
        return self._responders.pop(request_id)

    def forget(self, request_id: RequestId) -> None:
        """Gives up a request that gets no answer; no effect if it was answered."""
        self._responders.pop(request_id, None)
