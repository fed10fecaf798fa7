"""Orders: requests that make a node do what it would not do by itself, and how both ends record them.

The harness records an order in its event file before it sends it, a broker records orders that it forwards for Kafka
clients, and a node records each order before it performs it. An order that only the node has recorded has an unknown
sender.
"""

from typing import Final

import msgspec

from laststand.emulator.core import admin_messages as admin
from laststand.emulator.core import events, messages
from laststand.emulator.core.quorum import messages as quorum_messages
from laststand.emulator.core.types import CauseId, MetadataOffset, NodeId, TopicPartition

ORDERS: Final[frozenset[type]] = frozenset(
    {
        quorum_messages.AddRaftVoterRequest,
        quorum_messages.RemoveRaftVoterRequest,
        admin.CreateTopicsRequest,
        admin.DeleteTopicsRequest,
        admin.CreatePartitionsRequest,
        admin.ElectLeadersRequest,
        admin.AlterPartitionReassignmentsRequest,
        admin.IncrementalAlterConfigsRequest,
        admin.UpdateFeaturesRequest,
        admin.UnregisterBrokerRequest,
        admin.CreateAclsRequest,
        admin.DeleteAclsRequest,
        admin.AlterClientQuotasRequest,
        messages.DeleteRecordsRequest,
    }
)
"""Administrators' requests that change something; all others are questions."""

_ENCODER: Final = msgspec.json.Encoder(order="deterministic")


def is_order(request: messages.Request) -> bool:
    """Returns whether a request is an administrator's request that changes something."""
    return type(request) in ORDERS


def order_given(request: messages.Request, *, to: NodeId, cause_id: CauseId) -> events.OrderGiven:
    """Returns the harness's record of an administrator's request."""
    return events.OrderGiven(cause_id=cause_id, given_to=to, api=_api(request), order=_text(request))


def order_relayed(
    request: messages.Request,
    *,
    client: str,
    to: NodeId,
    cause_id: CauseId,
    metadata_offset: MetadataOffset,
    unclean_elections: tuple[str, ...],
) -> events.OrderRelayed:
    """Returns a broker's record of a Kafka client's order."""
    asked = request.partitions if isinstance(request, messages.DeleteRecordsRequest) else ()
    return events.OrderRelayed(
        cause_id=cause_id,
        client=client,
        given_to=to,
        api=_api(request),
        order=_text(request),
        metadata_offset=metadata_offset,
        unclean_elections=unclean_elections,
        deletions=tuple(
            events.RequestedDeletion(str(TopicPartition(each.topic, each.partition)), each.offset) for each in asked
        ),
    )


def order_received(request: messages.Request, *, giver: str, cause_id: CauseId) -> events.OrderReceived:
    """Returns a node's record of an administrator's request."""
    return events.OrderReceived(cause_id=cause_id, api=_api(request), order=_text(request), giver=giver)


def _api(request: messages.Request) -> str:
    return type(request).__name__.removesuffix("Request")


def _text(request: messages.Request) -> str:
    return _ENCODER.encode(request).decode()
