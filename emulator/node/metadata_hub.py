"""The subscribers of the committed metadata, and their positions.

Every committed batch is kept in memory. A subscriber is a position in that history, so a slow one costs nothing, needs
no queue and is never dropped: it gets larger messages. Only committed records are added. One of several controllers
serves readers only while it is the active one.
"""

import asyncio
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from laststand.emulator.core import records
from laststand.emulator.core.requester import Requester
from laststand.emulator.core.types import CauseId, LeaderEpoch, MetadataOffset
from laststand.emulator.rpc.inbound import StreamMessage, SubscriptionEndedError
from laststand.emulator.rpc.metadata_codec import NO_EPOCH, MetadataStreamRequest, encode_stream_response

BATCHES_MAX: Final = 256
"""Batches in one message of the stream."""


class MetadataHub:
    """The committed history and its readers.

    Args:
        batches: the batches that were durable at the start.
        cause_id: of those batches, whose own causes are not stored.
        is_authorized: returns whether a reader may have its next message; asked before each, as of Kafka's fetches.
        served_epoch: the controller epoch in which streams are served, 0 of the only controller; ``None`` of one of
            several that is not active.
    """

    def __init__(
        self,
        batches: Iterable[records.MetadataBatch],
        *,
        cause_id: CauseId,
        is_authorized: Callable[[Requester | None], bool],
        served_epoch: LeaderEpoch | None = NO_EPOCH,
    ) -> None:
        self.is_authorized = is_authorized
        self.served_epoch = served_epoch
        self._batches = list(batches)
        self._causes = [cause_id] * len(self._batches)
        self._subscriptions: set[Subscription] = set()

    @property
    def end_offset(self) -> MetadataOffset:
        """End of the committed history, exclusive."""
        return self._batches[-1].end_offset if self._batches else MetadataOffset(0)

    def publish(self, batch: records.MetadataBatch, *, cause_id: CauseId) -> None:
        """Adds a durable batch and wakes every reader."""
        self._batches.append(batch)
        self._causes.append(cause_id)
        for subscription in self._subscriptions:
            subscription.has_news.set()

    def subscribe(self, request: MetadataStreamRequest, requester: Requester | None = None) -> "Subscription":
        """Returns a new reader, whose first message has the present end of the history."""
        position = bisect_left(self._batches, request.from_offset, key=lambda batch: batch.base_offset)
        starts = self._batches[position].base_offset if position < len(self._batches) else self.end_offset
        is_served = self.served_epoch is not None and self.served_epoch >= request.controller_epoch
        subscription = Subscription(
            self, position if is_served and starts == request.from_offset else None, request.cause_id, requester
        )
        self._subscriptions.add(subscription)
        return subscription

    def serve(self, controller_epoch: LeaderEpoch | None) -> None:
        """Serves readers from now on as the controller of an epoch, or not at all; ends the open streams."""
        self.served_epoch = controller_epoch
        self.close()

    def close(self) -> None:
        """Ends every reader's stream."""
        for subscription in self._subscriptions:
            subscription.end()

    def leave(self, subscription: "Subscription") -> None:
        """Forgets a reader."""
        self._subscriptions.discard(subscription)

    def message(self, position: int, end: int) -> bytes:
        """Returns the encoded batches from one position to another, exclusive."""
        batches = self._batches[position:end]
        return self.encode(batches, cause_id=self._causes[end - 1])

    def encode(self, batches: Sequence[records.MetadataBatch], *, cause_id: CauseId) -> bytes:
        """Returns a message of the stream as it is now."""
        return encode_stream_response(
            batches,
            end_offset=self.end_offset,
            cause_id=cause_id,
            controller_epoch=self.served_epoch or NO_EPOCH,
        )

    def cause_of(self, end: int) -> CauseId:
        """Returns the cause of the batch before a position."""
        return self._causes[end - 1]

    def __len__(self) -> int:
        return len(self._batches)


class Subscription:
    """One reader of the history; implements ``laststand.emulator.rpc.inbound.Subscriber``."""

    def __init__(self, hub: MetadataHub, position: int | None, cause_id: CauseId, requester: Requester | None) -> None:
        """Starts at a position, or at ``None``, which is not served, so that the stream ends at once."""
        self.has_news = asyncio.Event()
        self._hub = hub
        self._position = position
        self._sent = position or 0
        self._cause_id = cause_id
        self._requester = requester
        self._opening: bytes | None = hub.encode((), cause_id=cause_id)

    async def next_message(self) -> StreamMessage:
        """Returns the next message; see ``laststand.emulator.rpc.inbound.Subscriber``."""
        if not self._hub.is_authorized(self._requester):
            raise SubscriptionEndedError(f"{self._requester} may not read the metadata log")
        if self._position is not None and self._opening is not None:
            opening, self._opening = self._opening, None
            return StreamMessage(lambda: opening, self._cause_id)
        while self._position == len(self._hub):
            self.has_news.clear()
            await self.has_news.wait()
        if self._position is None:
            raise SubscriptionEndedError("no batch starts at the offset asked for, or the controller is not active")
        end = self._position = min(len(self._hub), self._position + BATCHES_MAX)
        return StreamMessage(lambda: self._up_to(end), self._hub.cause_of(end))

    def _up_to(self, end: int) -> bytes | None:
        if end <= self._sent:
            return None
        position, self._sent = self._sent, end
        return self._hub.message(position, end)

    def end(self) -> None:
        """Makes the next message an end."""
        self._position = None
        self.has_news.set()

    def leave(self) -> None:
        """Notes that the caller is gone."""
        self._hub.leave(self)
