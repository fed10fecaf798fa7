"""A broker's end of the metadata stream: opens it, reopens it when lost, and replays its records into the image.

States and edges::

    CLOSED --open--> OPENING --opened--> OPEN --lost--> BACKING_OFF --time--> OPENING --lost--> BACKING_OFF ...

The driver holds the stream itself. Kept here are only the end offset of the metadata log when the stream was last
opened, and the backoff before the next try. When the broker learns of a higher controller epoch, it opens the stream
again, at the controller of that epoch.
"""

from typing import Final

from laststand.emulator.core import effects, records
from laststand.emulator.core.broker.kraft.controller_channel import ControllerChannel
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.types import LeaderEpoch, MetadataOffset, NodeId

BACKOFF_INITIAL_MS: Final = 20
BACKOFF_MAX_MS: Final = 500
_DOUBLINGS_MAX: Final = 16


class MetadataStream:
    """The stream that feeds ``image``."""

    def __init__(self, image: MetadataImage, controllers: ControllerChannel) -> None:
        self._image = image
        self._controllers = controllers
        self._source: NodeId | None = None
        self._controller_epoch = LeaderEpoch(0)
        self._end_offset: MetadataOffset | None = None
        self._failures = 0
        self._reopen_at_ms: int | None = None

    @property
    def has_reached_end(self) -> bool:
        """The image has every record that the metadata log had when the stream was opened."""
        return self._end_offset is not None and self._image.next_offset >= self._end_offset

    def next_deadline_ms(self) -> int | None:
        """Returns when to try again, if it waits for that."""
        return self._reopen_at_ms

    def open(self, turn: Turn) -> None:
        """Asks for all records from the image's end on."""
        self._source, self._controller_epoch = self._controllers.target, self._controllers.controller_epoch
        turn.send(
            effects.OpenMetadataStream(
                from_offset=self._image.next_offset,
                destination=self._source,
                controller_epoch=self._controller_epoch,
            )
        )

    def handle_opened(self, end_offset: MetadataOffset, controller_epoch: LeaderEpoch) -> None:
        """Notes the end of the metadata log, unless the controller that reports it has an old epoch."""
        self._failures = 0
        self._controller_epoch = controller_epoch
        if self._controllers.is_current(controller_epoch):
            self._end_offset = end_offset
        elif self._source is not None:
            self._controllers.pass_over(self._source)

    def follow_controller(self, turn: Turn) -> None:
        """Reopens the stream if the broker knows a higher controller epoch than that of the stream's controller."""
        if self._reopen_at_ms is None and self._controllers.controller_epoch > self._controller_epoch:
            self.open(turn)

    def handle_lost(self, turn: Turn) -> None:
        """Reopens the stream after a backoff that doubles with each failure in a row, up to ``BACKOFF_MAX_MS``."""
        if self._source is not None:
            self._controllers.pass_over(self._source)
        backoff_ms = BACKOFF_INITIAL_MS << min(self._failures, _DOUBLINGS_MAX)
        self._reopen_at_ms = turn.now_ms + min(backoff_ms, BACKOFF_MAX_MS)
        self._failures += 1

    def handle_timer(self, turn: Turn) -> None:
        """Reopens the stream once the backoff is over."""
        if self._reopen_at_ms is not None and self._reopen_at_ms <= turn.now_ms:
            self._reopen_at_ms = None
            self.open(turn)

    def replay(self, batches: tuple[records.MetadataBatch, ...]) -> None:
        """Replays records into the image; skips records that a reopened stream repeats."""
        for batch in batches:
            for index, record in enumerate(batch.records):
                offset = MetadataOffset(batch.base_offset + index)
                if offset >= self._image.next_offset:
                    self._image.replay(record, offset=offset)
