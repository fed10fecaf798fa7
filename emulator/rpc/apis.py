"""The unary APIs: their services, and their messages on the wire.

Every request and response carries its ``cause_id`` besides the core's fields. Produce and Fetch are streams and have a
codec of their own (``data_codec``), as has the metadata stream (``metadata_codec``).
"""

import typing
from types import MappingProxyType
from typing import Final, cast

from laststand.emulator.core import messages
from laststand.emulator.core.admin_messages import (
    AdminRequest,
    AdminResponse,
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
)
from laststand.emulator.core.message import Message
from laststand.emulator.core.messages import Request, Response
from laststand.emulator.core.types import CauseId, NodeId
from laststand.emulator.core.zookeeper import control_messages
from laststand.emulator.rpc.generated import broker_pb2, common_pb2, control_pb2, controller_pb2
from laststand.emulator.rpc.struct_codec import StructCodec

CONTROLLER_SERVICE: Final = "laststand.Controller"
BROKER_SERVICE: Final = "laststand.Broker"
ZOOKEEPER_BROKER_SERVICE: Final = "laststand.ZooKeeperBroker"
"""Served by brokers of clusters with ZooKeeper, beside the broker's."""

_TRANSPORT_FIELDS: Final = ("cause_id",)


def method_path(service: str, name: str) -> str:
    """Returns the path of a method, as gRPC puts it in a request."""
    return f"/{service}/{name}"


class UnaryApi:
    """One request-response method.

    Attributes:
        service: which serves it.
        name: Kafka's name of the API, which is the method's too.
        request_type: the core's request.
        path: of the method, for gRPC.
    """

    def __init__(self, service: str, request: type[Message], response: type[Message]) -> None:
        self.service = service
        self.request_type = request
        self.name = request.__name__.removesuffix("Request")
        self.path = method_path(service, self.name)
        modules = (controller_pb2, broker_pb2, common_pb2, control_pb2)
        module = next(pb2 for pb2 in modules if hasattr(pb2, request.__name__))
        self._request = StructCodec(request, getattr(module, request.__name__), _TRANSPORT_FIELDS)
        self._response = StructCodec(response, getattr(module, response.__name__), _TRANSPORT_FIELDS)

    def encode_request(self, request: Request, *, cause_id: CauseId) -> bytes:
        """Returns a request's bytes."""
        return _encode(self._request, request, cause_id)

    def decode_request(self, payload: bytes) -> tuple[Request, CauseId]:
        """Returns the request and its cause.

        Raises:
            CodecError: the bytes are no such request.
        """
        request, cause_id = _decode(self._request, payload)
        return cast(Request, request), cause_id

    def encode_response(self, response: Response, *, cause_id: CauseId) -> bytes:
        """Returns a response's bytes."""
        return _encode(self._response, response, cause_id)

    def decode_response(self, payload: bytes) -> tuple[Response, CauseId]:
        """Returns the response and its cause.

        Raises:
            CodecError: the bytes are no such response.
        """
        response, cause_id = _decode(self._response, payload)
        return cast(Response, response), cause_id


def _encode(codec: StructCodec[Message], value: Message, cause_id: CauseId) -> bytes:
    return codec.serialize(value, cause_id=cause_id)


def _decode(codec: StructCodec[Message], payload: bytes) -> tuple[Message, CauseId]:
    message = codec.parse(payload)
    return codec.read(message), CauseId(getattr(message, _TRANSPORT_FIELDS[0]))


_ADMIN_APIS: Final = tuple(
    UnaryApi(CONTROLLER_SERVICE, request, response)
    for request, response in zip(typing.get_args(AdminRequest), typing.get_args(AdminResponse), strict=True)
)

CONTROLLER_APIS: Final = (
    UnaryApi(CONTROLLER_SERVICE, messages.BrokerRegistrationRequest, messages.BrokerRegistrationResponse),
    UnaryApi(CONTROLLER_SERVICE, messages.BrokerHeartbeatRequest, messages.BrokerHeartbeatResponse),
    UnaryApi(CONTROLLER_SERVICE, messages.AlterPartitionRequest, messages.AlterPartitionResponse),
    UnaryApi(CONTROLLER_SERVICE, messages.AllocateProducerIdsRequest, messages.AllocateProducerIdsResponse),
    UnaryApi(CONTROLLER_SERVICE, messages.DescribeTopicPartitionsRequest, messages.DescribeTopicPartitionsResponse),
    *_ADMIN_APIS,
)
"""What a controller serves, the metadata stream aside."""

BROKER_APIS: Final = (
    UnaryApi(BROKER_SERVICE, messages.MetadataRequest, messages.MetadataResponse),
    UnaryApi(BROKER_SERVICE, messages.InitProducerIdRequest, messages.InitProducerIdResponse),
    UnaryApi(BROKER_SERVICE, messages.ListOffsetsRequest, messages.ListOffsetsResponse),
    UnaryApi(BROKER_SERVICE, messages.OffsetForLeaderEpochRequest, messages.OffsetForLeaderEpochResponse),
    UnaryApi(BROKER_SERVICE, messages.DeleteRecordsRequest, messages.DeleteRecordsResponse),
    UnaryApi(BROKER_SERVICE, messages.DescribeTopicPartitionsRequest, messages.DescribeTopicPartitionsResponse),
    UnaryApi(BROKER_SERVICE, messages.GetReplicaLogInfoRequest, messages.GetReplicaLogInfoResponse),
)
"""What a broker serves, Produce and Fetch aside."""

ZOOKEEPER_BROKER_APIS: Final = (
    UnaryApi(ZOOKEEPER_BROKER_SERVICE, control_messages.LeaderAndIsrRequest, control_messages.LeaderAndIsrResponse),
    UnaryApi(ZOOKEEPER_BROKER_SERVICE, control_messages.UpdateMetadataRequest, control_messages.UpdateMetadataResponse),
    UnaryApi(ZOOKEEPER_BROKER_SERVICE, control_messages.StopReplicaRequest, control_messages.StopReplicaResponse),
    UnaryApi(
        ZOOKEEPER_BROKER_SERVICE,
        control_messages.ControlledShutdownRequest,
        control_messages.ControlledShutdownResponse,
    ),
    UnaryApi(ZOOKEEPER_BROKER_SERVICE, messages.AlterPartitionRequest, messages.AlterPartitionResponse),
    UnaryApi(ZOOKEEPER_BROKER_SERVICE, ElectLeadersRequest, ElectLeadersResponse),
    UnaryApi(ZOOKEEPER_BROKER_SERVICE, AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse),
)
"""What a broker of a cluster with ZooKeeper serves beside that: each hosts a controller."""

_FIRST_CONTROLLER_ID: Final = NodeId(100)

CONTROLLER_API_OF: Final = MappingProxyType({api.request_type: api for api in CONTROLLER_APIS})
"""The controller's API of a type of request."""

BROKER_API_OF: Final = MappingProxyType({api.request_type: api for api in (*BROKER_APIS, *ZOOKEEPER_BROKER_APIS)})
"""The broker's API of a type of request."""


def api_of(request: Request, destination: NodeId) -> UnaryApi:
    """Returns the API that a request belongs to; the destination's id implies which service runs there.

    Raises:
        KeyError: that service does not serve such requests.
    """
    apis = CONTROLLER_API_OF if destination >= _FIRST_CONTROLLER_ID else BROKER_API_OF
    return apis[type(request)]
