"""The keys of records that a tap saw acknowledged, one line for each batch: ``AckedKeys``."""

from pathlib import Path

import msgspec

from laststand.emulator.core.errors import CorruptRecordError, ErrorCode
from laststand.emulator.core.history import AckedKeys
from laststand.emulator.core.messages import ProducePartitionResponse
from laststand.emulator.kafka_listener.client_history import Sent
from laststand.emulator.storage.filesystem import Buffer
from laststand.emulator.storage.record_codec import read_records


class KeyFile:
    """Writer of such a file; it is made with the first line."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._encoder = msgspec.json.Encoder()
        self._lines = bytearray()

    def add(self, sent: Sent, outcome: ProducePartitionResponse, keys: tuple[str | None, ...]) -> None:
        """Adds the keys of a batch that was acknowledged with an offset."""
        if outcome.error is ErrorCode.NONE and outcome.base_offset is not None and any(keys):
            line = AckedKeys(
                topic=outcome.topic,
                topic_id=sent.topic_id,
                partition=outcome.partition,
                base_offset=outcome.base_offset,
                crc=sent.batch.crc,
                keys=keys,
            )
            self._lines += self._encoder.encode(line) + b"\n"

    def flush(self) -> None:
        """Writes the lines that were added since the last call."""
        if self._lines:
            self._path.parent.mkdir(exist_ok=True)
            with self._path.open("ab") as file:
                file.write(self._lines)
            self._lines.clear()


def keys_of(batch: Buffer) -> tuple[str | None, ...]:
    """Returns the keys of a batch's records as text; of one that cannot be read none."""
    try:
        return tuple([None if each.key is None else each.key.decode(errors="replace") for each in read_records(batch)])
    except CorruptRecordError:
        return ()
