"""SASL on a listener without it: Kafka answers that this is not the time for it."""

from collections.abc import Mapping
from typing import Final

from laststand.emulator.kafka_listener.messages import Message, api_named
from laststand.emulator.kafka_listener.requests import ClientRequest, Handler, Served
from laststand.emulator.kafka_listener.wire_errors import WireError


async def _handshake(_: Served, __: ClientRequest) -> Message:
    return {"errorCode": WireError.ILLEGAL_SASL_STATE}


async def _authenticate(_: Served, __: ClientRequest) -> Message:
    message = "SaslAuthenticate request received after successful authentication"
    return {"errorCode": WireError.ILLEGAL_SASL_STATE, "errorMessage": message}


SASL: Final[Mapping[int, Handler]] = {
    api_named("SaslHandshake").key: _handshake,
    api_named("SaslAuthenticate").key: _authenticate,
}
