"""The unary APIs: their services, and their messages on the wire.

Every request and response carries its ``cause_id`` besides the core's fields. Produce and Fetch are streams and have a
codec of their own (``data_codec``), as has the metadata stream (``metadata_codec``).
"""

from types import MappingProxyType
from typing import Final, cast

from laststand.emulator.core import messages
from laststand.emulator.core.errors import EmulatorError
from laststand.emulator.core.message import Message
from laststand.emulator.core.types import CauseId, NodeId
from laststand.emulator.rpc.generated import broker_pb2, common_pb2, control_pb2, controller_pb2, quorum_pb2
from laststand.emulator.rpc.services import (
    BROKER_SERVICE,
    CONTROLLER_SERVICE,
    QUORUM_SERVICE,
    RESPONSE_OF,
    UNARY,
    ZOOKEEPER_BROKER_SERVICE,
    api_name,
)
from laststand.emulator.rpc.struct_codec import StructCodec

_TRANSPORT_FIELDS: Final = ("cause_id",)


def method_path(service: str, name: str) -> str:
    """Returns the path of a method, as gRPC puts it in a request."""
    return f"/{service}/{name}"


class UnaryApi:
    """One request-response method.

    Attributes:
        service: the service that has it.
        name: Kafka's name of the API, which is the method's too.
        request_type: the core's request.
        path: of the method, for gRPC.
    """

    def __init__(self, service: str, request: type[Message]) -> None:
        self.service = service
        self.request_type = request
        self.name = api_name(request)
        self.path = method_path(service, self.name)
        modules = (controller_pb2, broker_pb2, common_pb2, control_pb2, quorum_pb2)
        module = next((pb2 for pb2 in modules if hasattr(pb2, request.__name__)), None)
        if module is None:
            raise EmulatorError(f"the generated code has no {request.__name__}: it is older than proto/; make proto")
        response = RESPONSE_OF[request]
        self._request = StructCodec(request, getattr(module, request.__name__), _TRANSPORT_FIELDS)
        self._response = StructCodec(response, getattr(module, response.__name__), _TRANSPORT_FIELDS)

    def encode_request(self, request: messages.Request, *, cause_id: CauseId) -> bytes:
        """Returns a request's bytes."""
        return _encode(self._request, request, cause_id)

    def decode_request(self, payload: bytes) -> tuple[messages.Request, CauseId]:
        """Returns the request and its cause.

        Raises:
            CodecError: the bytes are no such request.
        """
        request, cause_id = _decode(self._request, payload)
        return cast(messages.Request, request), cause_id

    def encode_response(self, response: messages.Response, *, cause_id: CauseId) -> bytes:
        """Returns a response's bytes."""
        return _encode(self._response, response, cause_id)

    def decode_response(self, payload: bytes) -> tuple[messages.Response, CauseId]:
        """Returns the response and its cause.

        Raises:
            CodecError: the bytes are no such response.
        """
        response, cause_id = _decode(self._response, payload)
        return cast(messages.Response, response), cause_id


def _encode(codec: StructCodec[Message], value: Message, cause_id: CauseId) -> bytes:
    return codec.serialize(value, cause_id=cause_id)


def _decode(codec: StructCodec[Message], payload: bytes) -> tuple[Message, CauseId]:
    message = codec.parse(payload)
    return codec.read(message), CauseId(getattr(message, _TRANSPORT_FIELDS[0]))


def _apis(service: str) -> tuple[UnaryApi, ...]:
    return tuple(UnaryApi(service, request) for request in UNARY[service])


CONTROLLER_APIS: Final = _apis(CONTROLLER_SERVICE)
QUORUM_APIS: Final = _apis(QUORUM_SERVICE)
BROKER_APIS: Final = _apis(BROKER_SERVICE)
ZOOKEEPER_BROKER_APIS: Final = _apis(ZOOKEEPER_BROKER_SERVICE)

_FIRST_CONTROLLER_ID: Final = NodeId(100)

CONTROLLER_API_OF: Final = MappingProxyType({api.request_type: api for api in (*CONTROLLER_APIS, *QUORUM_APIS)})
"""The controller's API of a type of request."""

BROKER_API_OF: Final = MappingProxyType({api.request_type: api for api in (*BROKER_APIS, *ZOOKEEPER_BROKER_APIS)})
"""The broker's API of a type of request."""


def api_of(request: messages.Request, destination: NodeId, *, controller_id: NodeId | None = None) -> UnaryApi:
    """Returns the API that a request belongs to; the destination's id implies which service runs there.

    Args:
        request: to be sent.
        destination: the receiver's id.
        controller_id: the controller's id, if it may also be a broker's.

    Raises:
        KeyError: the service does not serve such requests.
    """
    is_controller = destination == controller_id or destination >= _FIRST_CONTROLLER_ID
    apis = CONTROLLER_API_OF if is_controller else BROKER_API_OF
    return apis[type(request)]
