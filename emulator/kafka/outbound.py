"""Sends a client's requests to Apache Kafka, and turns the answers into inputs of the core.

Each pair of node and kind of request has a connection of its own, opened at first use and again after it broke: a fetch
that waits for records delays no other request.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from laststand.emulator.core import inputs, messages
from laststand.emulator.core.errors import EmulatorError, TransportError
from laststand.emulator.core.group_messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
)
from laststand.emulator.core.transaction_messages import (
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitTransactionRequest,
)
from laststand.emulator.core.types import Acks, CauseId, CorrelationId, NodeId, RequestFailure
from laststand.emulator.kafka.broker_numbers import BrokerNumbers
from laststand.emulator.kafka.calls import Call, Versions
from laststand.emulator.kafka.client_calls import (
    fetch_call,
    init_producer_id_call,
    list_offsets_call,
    metadata_call,
    produce_call,
)
from laststand.emulator.kafka.connection import KafkaConnection, Login
from laststand.emulator.kafka.membership_calls import (
    heartbeat_call,
    join_group_call,
    leave_group_call,
    sync_group_call,
)
from laststand.emulator.kafka.transaction_calls import (
    add_partitions_call,
    end_txn_call,
    init_transaction_call,
    offset_commit_call,
    offset_fetch_call,
)
from laststand.emulator.rpc.address_book import AddressBook
from laststand.emulator.rpc.channel import Keepalive
from laststand.emulator.rpc.data_codec import Attachment, ParseFetched
from laststand.emulator.rpc.outbound import Deliver

_log: Final = logging.getLogger(__name__)


class KafkaOutbound:
    """The sending half of a client.

    Args:
        addresses: addresses of nodes.
        keepalive: settings after which silent nodes are given up.
        tasks: owns every task that sending starts; leave it only after ``close``.
        parse_fetched: reads the batch headers in a fetched block.
        deliver: called with every outcome, on the event loop, never from within ``send``.
        login: of the client; ``None`` if nodes do not require one.
        numbers: of the cluster's brokers.
    """

    def __init__(
        self,
        *,
        addresses: AddressBook,
        keepalive: Keepalive,
        tasks: asyncio.TaskGroup,
        parse_fetched: ParseFetched,
        deliver: Deliver,
        numbers: BrokerNumbers,
        login: Login | None = None,
    ) -> None:
        self._addresses = addresses
        self._keepalive = keepalive
        self._tasks = tasks
        self._parse_fetched = parse_fetched
        self._deliver = deliver
        self._login = login
        self._numbers = numbers
        self._connections: dict[tuple[NodeId, type], KafkaConnection] = {}
        self._dialling: dict[tuple[NodeId, type], asyncio.Lock] = {}
        self._calls: set[asyncio.Task[None]] = set()

    def send(
        self,
        *,
        destination: NodeId,
        correlation_id: CorrelationId,
        request: messages.Request,
        timeout_ms: int,
        cause_id: CauseId,
        attachments: Sequence[Attachment] = (),
    ) -> None:
        """Sends a request of a producer or consumer; arguments and outcome are those of ``Outbound.send``."""
        task = self._tasks.create_task(
            self._call(destination, correlation_id, request, timeout_ms, cause_id, attachments)
        )
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)

    async def close(self) -> None:
        """Gives up every unanswered request and closes all connections."""
        for task in tuple(self._calls):
            task.cancel()
        for connection in self._connections.values():
            await connection.close()

    async def _call(
        self,
        destination: NodeId,
        correlation_id: CorrelationId,
        request: messages.Request,
        timeout_ms: int,
        cause_id: CauseId,
        attachments: Sequence[Attachment],
    ) -> None:
        failure = RequestFailure.DISCONNECTED
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                connection = await self._connection(destination, type(request))
                call = self._call_of(request, attachments, connection.versions)
                if isinstance(request, messages.ProduceRequest) and request.acks == Acks.NONE:
                    connection.send(call.request)
                    return
                answer = await connection.ask(call.request, call.response)
        except TimeoutError:
            failure = RequestFailure.TIMED_OUT
        except (OSError, TransportError) as error:
            _log.debug("request=%s peer=%d failed reason=%s", type(request).__name__, destination, error)
        else:
            try:
                response, blocks = call.decode(answer)
            except (LookupError, ValueError, EmulatorError) as error:  # somebody else's broker answers something else
                _log.warning("answer to %s of node %d cannot be read: %r", type(request).__name__, destination, error)
            else:
                received = inputs.ResponseReceived(cause_id=cause_id, correlation_id=correlation_id, response=response)
                self._deliver(received, blocks)
                return
        self._deliver(inputs.RequestFailed(cause_id=cause_id, correlation_id=correlation_id, failure=failure), ())

    def _call_of(self, request: messages.Request, attachments: Sequence[Attachment], versions: Versions) -> Call:
        match request:
            case messages.MetadataRequest():
                return metadata_call(request)
            case messages.InitProducerIdRequest():
                return init_producer_id_call(request)
            case messages.ProduceRequest():
                return produce_call(request, attachments, versions)
            case messages.FetchRequest():
                return fetch_call(request, self._parse_fetched)
            case messages.ListOffsetsRequest():
                return list_offsets_call(request)
            case InitTransactionRequest():
                return init_transaction_call(request)
            case AddPartitionsToTxnRequest():
                return add_partitions_call(request)
            case EndTxnRequest():
                return end_txn_call(request)
            case OffsetCommitRequest():
                return offset_commit_call(request)
            case OffsetFetchRequest():
                return offset_fetch_call(request)
            case JoinGroupRequest():
                return join_group_call(request)
            case SyncGroupRequest():
                return sync_group_call(request)
            case HeartbeatRequest():
                return heartbeat_call(request)
            case LeaveGroupRequest():
                return leave_group_call(request)
            case _:
                raise TypeError(f"clients do not send {type(request).__name__}")

    async def _connection(self, destination: NodeId, kind: type) -> KafkaConnection:
        key = (destination, kind)
        async with self._dialling.setdefault(key, asyncio.Lock()):
            found = self._connections.get(key)
            if found is None or not found.is_open:
                address = self._addresses.address_of(destination)
                found = self._connections[key] = await KafkaConnection.dial(
                    address, keepalive=self._keepalive, login=self._login, numbers=self._numbers
                )
            return found
