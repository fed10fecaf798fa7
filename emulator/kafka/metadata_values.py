"""Values of a controller's log as Kafka writes them, with our own part at their ends."""

from laststand.emulator.core import records
from laststand.emulator.core.events import ControllerEvent
from laststand.emulator.core.quorum_controller.values import StoredRecord
from laststand.emulator.core.types import MetadataOffset, TopicId
from laststand.emulator.kafka.metadata_encoding import encode_record
from laststand.emulator.kafka.metadata_records import MetadataRecordDecoder, OtherRecord
from laststand.emulator.storage.fields import FieldError


class KafkaValues:
    """``ValueCodec`` of one log: remembers the names of its topics, because some of Kafka's records name topics."""

    def __init__(self) -> None:
        self._decoder = MetadataRecordDecoder()
        self._topics: dict[TopicId, str] = {}

    def encode(self, batch: records.MetadataBatch, events: tuple[ControllerEvent, ...]) -> tuple[bytes, ...]:
        """Returns the values of a batch."""
        values: list[bytes] = []
        last = len(batch.records) - 1
        for place, record in enumerate(batch.records):
            self._note(record)
            offset = MetadataOffset(batch.base_offset + place)
            described = events if place == last else ()
            values.append(encode_record(record, offset=offset, topics=self._topics, events=described))
        return tuple(values)

    def decode(self, value: bytes) -> StoredRecord:
        """Returns the record of a value.

        Raises:
            FieldError: the value holds other data.
        """
        record, events = self._decoder.decode_described(value)
        if isinstance(record, OtherRecord):
            raise FieldError(f"a controller of ours does not write {record.name} as Kafka does")
        self._note(record)
        return StoredRecord(record, events)

    def _note(self, record: records.Record) -> None:
        if isinstance(record, records.TopicRecord):
            self._topics[record.topic_id] = record.name
