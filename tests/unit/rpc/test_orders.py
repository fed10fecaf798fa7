"""Requests that are orders, and what is noted of them at both ends."""

import typing

from laststand.emulator.core import admin_messages, messages
from laststand.emulator.core.quorum import messages as quorum_messages
from laststand.emulator.core.types import BrokerId, CauseId, NodeId
from laststand.emulator.rpc.apis import BROKER_APIS, CONTROLLER_APIS, QUORUM_APIS, ZOOKEEPER_BROKER_APIS
from laststand.emulator.rpc.orders import ORDERS, is_order, order_given, order_received

CONTROLLER = NodeId(100)


def test_each_administrators_request_is_an_order_or_a_question() -> None:
    questions = {
        kind for kind in typing.get_args(admin_messages.AdminRequest) if kind.__name__.startswith(("Describe", "List"))
    }
    others = {
        messages.DeleteRecordsRequest,
        quorum_messages.AddRaftVoterRequest,
        quorum_messages.RemoveRaftVoterRequest,
    }
    assert set(typing.get_args(admin_messages.AdminRequest)) - questions == ORDERS - others


def test_every_order_has_an_api() -> None:
    assert {
        api.request_type for api in (*CONTROLLER_APIS, *BROKER_APIS, *ZOOKEEPER_BROKER_APIS, *QUORUM_APIS)
    } >= ORDERS


def test_both_ends_note_the_same() -> None:
    """Whoever gives an order notes the request before it is encoded, and the node after it was decoded."""
    request = admin_messages.UnregisterBrokerRequest(broker_id=BrokerId(NodeId(2)))
    [api] = [api for api in CONTROLLER_APIS if api.request_type is admin_messages.UnregisterBrokerRequest]
    decoded, cause_id = api.decode_request(api.encode_request(request, cause_id=CauseId("step-1")))
    given = order_given(request, to=CONTROLLER, cause_id=CauseId("step-1"))
    received = order_received(decoded, giver="ipv4:127.0.0.1:1", cause_id=cause_id)
    assert is_order(request)
    assert (given.api, given.order, given.cause_id) == (received.api, received.order, received.cause_id)
    assert (given.given_to, given.api, given.order) == (CONTROLLER, "UnregisterBroker", '{"broker_id":2}')
