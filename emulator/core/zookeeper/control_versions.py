"""The fields of LeaderAndIsr, UpdateMetadata and StopReplica in each version (Kafka's ``*Request.json``).

The sender's ``inter.broker.protocol.version`` decides the version (``inter_broker_protocol``), and the version decides
what the request can carry: a field that the version lacks has its default at the reader.
``contains_all_replicas`` is KIP-550's, whose text adds it in version 5 of LeaderAndIsr.
"""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Final, TypeAlias, TypeVar

import msgspec

from laststand.emulator.core.zookeeper import control_messages

_ControlT = TypeVar("_ControlT", bound=control_messages.ControlMessage)
_Carrier: TypeAlias = type[msgspec.Struct]

FIELDS_SINCE: Final[Mapping[_Carrier, Mapping[str, int]]] = MappingProxyType(
    {
        control_messages.LeaderAndIsrRequest: {
            "broker_epoch": 2,
            "request_type": 5,
            "contains_all_replicas": 5,
            "is_kraft_controller": 7,
        },
        control_messages.LeaderAndIsrPartition: {
            "is_new": 1,
            "adding_replicas": 3,
            "removing_replicas": 3,
            "topic_id": 5,
            "leader_recovery_state": 6,
        },
        control_messages.UpdateMetadataRequest: {"broker_epoch": 5, "is_kraft_controller": 8},
        control_messages.MetadataPartition: {"offline_replicas": 4, "topic_id": 7},
        control_messages.StopReplicaRequest: {"broker_epoch": 1, "is_kraft_controller": 4},
        control_messages.StopReplicaPartition: {"leader_epoch": 3},
    }
)
"""The first version that has a field; a field that is not here is in every version."""

_UNSAID: Final[Mapping[str, object]] = MappingProxyType({"leader_epoch": control_messages.StopReplicaEpoch.UNKNOWN})
"""The values of missing fields that have no default."""


def has_field(carrier: _Carrier, field: str, version: int) -> bool:
    """Returns whether a request of this version, or a partition in it, has a field."""
    return version >= FIELDS_SINCE[carrier].get(field, 0)


def as_carried(request: _ControlT) -> _ControlT:
    """Returns a request as its version carries it: every field that the version lacks has its default."""
    carrier: _Carrier = type(request)
    lacking = _lacking(carrier, request.api_version)
    partitions = tuple(
        msgspec.structs.replace(partition, **absent) if absent else partition
        for partition in request.partitions
        for absent in (_lacking(type(partition), request.api_version),)
    )
    return msgspec.structs.replace(request, partitions=partitions, **lacking)


@cache
def _lacking(carrier: _Carrier, version: int) -> Mapping[str, object]:
    return {
        field.name: _UNSAID.get(field.name, field.default)
        for field in msgspec.structs.fields(carrier)
        if not has_field(carrier, field.name, version)
    }
