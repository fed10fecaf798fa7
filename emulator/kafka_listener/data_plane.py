"""The handlers of the requests of producers and consumers."""

from collections.abc import Mapping
from typing import Final

from laststand.emulator.kafka_listener.fetch import fetch
from laststand.emulator.kafka_listener.lookups import (
    delete_records,
    list_offsets,
    offset_for_leader_epoch,
)
from laststand.emulator.kafka_listener.messages import api_named
from laststand.emulator.kafka_listener.produce import produce
from laststand.emulator.kafka_listener.requests import Handler

DATA_PLANE: Final[Mapping[int, Handler]] = {
    api_named("Produce").key: produce,
    api_named("Fetch").key: fetch,
    api_named("ListOffsets").key: list_offsets,
    api_named("OffsetForLeaderEpoch").key: offset_for_leader_epoch,
    api_named("DeleteRecords").key: delete_records,
}
