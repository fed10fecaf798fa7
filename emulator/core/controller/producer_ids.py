"""Blocks of producer ids: each broker gets a thousand ids at a time and allocates them.

A block is allocated only once: its record is durable before the broker is answered (Kafka's
``ProducerIdControlManager``).
"""

from typing import Final

import msgspec

from laststand.emulator.core import messages, records
from laststand.emulator.core.controller.decision import Decision
from laststand.emulator.core.controller.view import ClusterView
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import ProducerId

BLOCK_SIZE: Final = 1000
"""Producer ids per block."""


class AllocateOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """Answer, and what it writes."""

    response: messages.AllocateProducerIdsResponse
    decisions: tuple[Decision, ...] = ()


def allocate_producer_ids(view: ClusterView, request: messages.AllocateProducerIdsRequest) -> AllocateOutcome:
    """Decides on a request for a block."""
    registration = view.image.brokers.get(request.broker_id)
    if registration is None or registration.broker_epoch != request.broker_epoch:
        return AllocateOutcome(response=messages.AllocateProducerIdsResponse(error=ErrorCode.STALE_BROKER_EPOCH))
    start = view.image.next_producer_id
    record = records.ProducerIdsRecord(
        broker_id=request.broker_id,
        broker_epoch=request.broker_epoch,
        next_producer_id=ProducerId(start + BLOCK_SIZE),
    )
    response = messages.AllocateProducerIdsResponse(
        error=ErrorCode.NONE, producer_id_start=start, producer_id_len=BLOCK_SIZE
    )
    return AllocateOutcome(response=response, decisions=(Decision(record=record),))
