"""Converts a request of the core to a call in Kafka's protocol, and its response back.

The schemas are those of ``kio``, which are generated from Kafka's own. Versions are fixed, and every release from 3.9
on supports them; only Produce has two: from version 13 on it names topics by id (KIP-516).
"""

import uuid
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Final, NamedTuple, TypeVar, cast

from kio.schema.errors import ErrorCode as KafkaError
from kio.schema.types import BrokerId as KafkaBrokerId
from kio.schema.types import TopicName
from kio.static.primitive import i32, i32Timedelta
from kio.static.protocol import Entity, RequestPayload, ResponsePayload

from laststand.emulator.core import messages
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import BrokerId, NodeId, TopicId
from laststand.emulator.core.uuid_text import uuid_bytes, uuid_text
from laststand.emulator.kafka.numbers import number_of

_ResponseT = TypeVar("_ResponseT", bound=ResponsePayload)

_KNOWN_ERRORS: Final = frozenset(int(error) for error in ErrorCode)


class Call(NamedTuple):
    """A request on the wire.

    Attributes:
        request: the request in Kafka's form.
        response: the type of the response.
        decode: returns the core's response, and the record bytes of each partition of a fetch response.
    """

    request: RequestPayload
    response: type[ResponsePayload]
    decode: Callable[[Entity], tuple[messages.Response, tuple[bytes, ...]]]


def call_of(
    request: RequestPayload, response: type[_ResponseT], decode: Callable[[_ResponseT], messages.Response]
) -> Call:
    """Returns the call of a request whose response brings no record bytes; ``decode`` gets what comes back."""
    return Call(request, cast(type[ResponsePayload], response), lambda entity: (decode(cast(_ResponseT, entity)), ()))


Versions = Mapping[int, int]
"""The newest version of each API that a node has, by API key."""


def error_of(error: KafkaError) -> ErrorCode:
    """Returns the core's error; for an error that the core does not have, UNKNOWN_SERVER_ERROR."""
    number = int(error)
    return ErrorCode(number) if number in _KNOWN_ERRORS else ErrorCode.UNKNOWN_SERVER_ERROR


def uuid_of(topic_id: TopicId | None) -> uuid.UUID | None:
    """Returns a topic's id as 16 bytes."""
    return None if topic_id is None else uuid.UUID(bytes=uuid_bytes(topic_id))


def topic_id_of(number: uuid.UUID | None) -> TopicId | None:
    """Returns a topic's id in Kafka's text form."""
    return None if number is None else TopicId(uuid_text(number.bytes))


def brokers_of(numbers: tuple[int, ...]) -> tuple[BrokerId, ...]:
    """Returns brokers' ids."""
    return tuple(BrokerId(NodeId(number)) for number in numbers)


def to_kafka(brokers: tuple[BrokerId, ...]) -> tuple[KafkaBrokerId, ...]:
    """Inverse of ``brokers_of``."""
    return tuple(KafkaBrokerId(broker) for broker in brokers)


def to_name(topic: str) -> TopicName:
    """Returns a topic's name in the library's type."""
    return TopicName(topic)


def to_milliseconds(duration_ms: int) -> i32Timedelta:
    """Returns a duration in the library's type."""
    return i32Timedelta.parse(timedelta(milliseconds=duration_ms))


def to_epoch(epoch: int | None) -> i32:
    """Returns an epoch, -1 for none."""
    return i32(number_of(epoch))
