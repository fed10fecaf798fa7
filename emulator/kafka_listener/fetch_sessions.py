"""Fetch sessions: a client names its partitions once, and then only what changes (KIP-227).

A session belongs to the broker's process, not to a connection. If there is no room for one, the response has session id
0, and the client continues with full requests.
"""

import secrets
import time
from typing import Final, NamedTuple, TypeAlias

from laststand.emulator.kafka_listener.messages import Message
from laststand.emulator.kafka_listener.wire_errors import WireError

Place: TypeAlias = tuple[str, int]
"""A topic, by name or id as the request has it, and a partition."""

SLOTS: Final = 1000
"""``max.incremental.fetch.session.cache.slots``."""

_EVICTABLE_AFTER_S: Final = 120.0
_FINAL_EPOCH: Final = -1
_FIRST_EPOCH: Final = 0
_LAST_EPOCH: Final = 0x7FFFFFFF
_NO_SESSION: Final = 0


class FetchSession:
    """A client's session.

    Attributes:
        id: random, never 0.
        epoch: the epoch that the next request must have.
        is_by_id: whether topics are named by their ids.
        partitions: the fetched partitions, as the client last asked for them.
        reported: high watermark and log start that the client was last sent of each partition.
    """

    def __init__(self, session_id: int, *, is_by_id: bool) -> None:
        self.id = session_id
        self.epoch = 1
        self.is_by_id = is_by_id
        self.partitions: dict[Place, Message] = {}
        self.reported: dict[Place, tuple[int, int]] = {}
        self.used_s = time.monotonic()

    def has_news(self, place: Place, answer: Message) -> bool:
        """Returns whether an incremental response has to include this partition; remembers its content.

        A partition that gave records comes last in the next request, so that each gets its share of the bytes.
        """
        reported = answer["highWatermark"], answer["logStartOffset"]
        is_news = bool(
            len(answer["records"])
            or answer["errorCode"]
            or answer.get("divergingEpoch") is not None
            or answer["preferredReadReplica"] >= 0
            or self.reported.get(place) != reported
        )
        # An error is sent with every answer.
        self.reported[place] = reported
        if len(answer["records"]) and place in self.partitions:
            self.partitions[place] = self.partitions.pop(place)
        return is_news


class Resolved(NamedTuple):
    """The partitions that a request asks for.

    Attributes:
        error: of the session; then the other fields do not count.
        partitions: to be read.
        session: of the request; ``None`` for a full request without one.
        is_incremental: whether partitions without news are left out of the answer.
    """

    error: int = 0
    partitions: dict[Place, Message] = {}  # noqa: RUF012  # never changed
    session: FetchSession | None = None
    is_incremental: bool = False

    @property
    def session_id(self) -> int:
        """The id of the session; 0 without one."""
        return _NO_SESSION if self.session is None else self.session.id

    def is_sent(self, place: Place, answer: Message) -> bool:
        """Returns whether the response has to include this partition; its session remembers the content."""
        has_news = self.session is None or self.session.has_news(place, answer)
        return has_news or not self.is_incremental


class FetchSessions:
    """The sessions of one broker process."""

    def __init__(self) -> None:
        self._sessions: dict[int, FetchSession] = {}

    def resolve(self, body: Message, *, is_by_id: bool) -> Resolved:
        """Returns the partitions that a request is about, and keeps its session up to date."""
        session_id, epoch = body["sessionId"], body["sessionEpoch"]
        named = _partitions(body)
        if epoch in (_FINAL_EPOCH, _FIRST_EPOCH):
            self._sessions.pop(session_id, None)
            session = self._opened(is_by_id=is_by_id) if epoch == _FIRST_EPOCH else None
            if session is not None:
                session.partitions = dict(named)
            return Resolved(partitions=named, session=session)
        session = self._sessions.get(session_id)
        if session is None:
            return Resolved(error=WireError.FETCH_SESSION_ID_NOT_FOUND)
        if session.is_by_id is not is_by_id:
            return Resolved(error=WireError.FETCH_SESSION_TOPIC_ID_ERROR)
        if session.epoch != epoch:
            return Resolved(error=WireError.INVALID_FETCH_SESSION_EPOCH)
        session.epoch = 1 if epoch == _LAST_EPOCH else epoch + 1
        session.used_s = time.monotonic()
        session.partitions.update(named)
        for topic in body["forgottenTopicsData"]:
            for partition in topic["partitions"]:
                place = topic["topicId"] or topic["topic"], partition
                session.partitions.pop(place, None)
                session.reported.pop(place, None)
        if not session.partitions:
            del self._sessions[session_id]
            return Resolved(is_incremental=True)
        return Resolved(partitions=dict(session.partitions), session=session, is_incremental=True)

    def without_answer(self, resolved: Resolved) -> int:
        """Returns the session id for a response without content: the request opens no session then."""
        if resolved.is_incremental:
            return resolved.session_id
        self._sessions.pop(resolved.session_id, None)
        return _NO_SESSION

    def _opened(self, *, is_by_id: bool) -> FetchSession | None:
        if len(self._sessions) >= SLOTS:
            oldest = min(self._sessions.values(), key=lambda session: session.used_s)
            if time.monotonic() - oldest.used_s < _EVICTABLE_AFTER_S:
                return None
            del self._sessions[oldest.id]
        session_id = 0
        while session_id == _NO_SESSION or session_id in self._sessions:
            session_id = secrets.randbits(31)
        self._sessions[session_id] = session = FetchSession(session_id, is_by_id=is_by_id)
        return session


def _partitions(body: Message) -> dict[Place, Message]:
    return {
        (topic["topicId"] or topic["topic"], partition["partition"]): partition
        for topic in body["topics"]
        for partition in topic["partitions"]
    }
