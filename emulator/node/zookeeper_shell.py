"""A broker's process in a cluster with ZooKeeper: a broker and a controller that share a session with the server.

In addition to every broker's process: requests between controllers and brokers are sent and received like all others,
and the core's requests to ZooKeeper go to the session, after the turn's events.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from laststand.emulator.core import effects, events, inputs, messages
from laststand.emulator.core.broker.replicas.config import BrokerConfig
from laststand.emulator.core.broker.zookeeper.broker import ZooKeeperBroker
from laststand.emulator.core.errors import InvariantError
from laststand.emulator.core.types import IncarnationId, RequestFailure
from laststand.emulator.core.zookeeper import exchange
from laststand.emulator.core.zookeeper.process import ZooKeeperProcess
from laststand.emulator.core.zookeeper.traffic import NetworkedProcess
from laststand.emulator.node.batch_bytes import batch_bytes
from laststand.emulator.node.broker_shell import Arrival, BrokerShell
from laststand.emulator.node.config import NodeConfig
from laststand.emulator.node.event_writer import EventWriter
from laststand.emulator.rpc.address_book import AddressBook
from laststand.emulator.storage.filesystem import Buffer, FileSystem
from laststand.emulator.zookeeper.session import ZooKeeperSession

if TYPE_CHECKING:
    from laststand.emulator.kafka_listener.gateway import Controller, CoreGateway

_TO_ZOOKEEPER: Final = (exchange.ZooKeeperRequest, exchange.OpenSession, exchange.CloseSession)


class ZooKeeperBrokerShell(BrokerShell):
    """Runs a broker and its controller; arguments and errors as in ``BrokerShell``."""

    _broker: ZooKeeperBroker

    def __init__(
        self, config: NodeConfig, events: EventWriter, incarnation_id: IncarnationId, filesystem: FileSystem
    ) -> None:
        super().__init__(config, events, incarnation_id, filesystem)
        self._server.add_zookeeper_broker()
        self._kept: list[Arrival] = []
        self._is_out_of_reach = False
        self._session = ZooKeeperSession(
            AddressBook(config.addresses).address_of(config.controller_id),
            timeout_ms=config.node_properties().broker_session_timeout_ms,
            deliver=self._handle,
        )

    async def run(self) -> None:
        """Runs until the core ends the process; its session ends first."""
        await super().run()
        await self._session.close()

    # --- The core -------------------------------------------------------------------------------------------------

    def _make_broker(self, config: BrokerConfig) -> ZooKeeperBroker:
        zookeeper, protocol = self._config.zookeeper, self._config.protocol()
        if zookeeper is None or protocol is None:
            raise InvariantError("a broker of a cluster with ZooKeeper has the rules of one")
        process = ZooKeeperProcess(config, self._encode_records, zookeeper.rules, protocol)
        self._networked = NetworkedProcess(process)
        return process.broker

    def _next_deadline_ms(self) -> int | None:
        return self._networked.next_deadline_ms()

    def _step(
        self, incoming: inputs.BrokerInput | exchange.ZooKeeperInput, *, now_ms: int
    ) -> Iterator[effects.BrokerEffect]:
        for effect in self._networked.step(incoming, now_ms=now_ms):
            if isinstance(effect, _TO_ZOOKEEPER):
                self._send_to_zookeeper(effect)
            else:
                yield effect

    def _controller_for_clients(self, core: "CoreGateway") -> "Controller":
        from laststand.emulator.kafka_listener.gateway import OwnController

        return OwnController(core)

    # --- ZooKeeper ------------------------------------------------------------------------------------------------

    def _send_to_zookeeper(self, effect: exchange.ZooKeeperEffect) -> None:
        self._departures.append(lambda: self._session.execute(effect))

    def _handle(self, incoming: exchange.ZooKeeperInput) -> None:
        server = self._config.controller_id
        match incoming:
            case exchange.ZooKeeperConnectionLost(cause_id=cause_id) if not self._is_out_of_reach:
                self._is_out_of_reach = True
                self._events.add(
                    events.PeerUnreachable(cause_id=cause_id, peer=server, failure=RequestFailure.DISCONNECTED)
                )
            case exchange.ZooKeeperReconnected() | exchange.SessionEstablished() | exchange.SessionExpired() if (
                self._is_out_of_reach
            ):
                self._is_out_of_reach = False
                self._events.add(events.PeerReachable(cause_id=incoming.cause_id, peer=server))
            case _:
                pass
        self._enqueue(incoming)

    # --- Requests that wait ---------------------------------------------------------------------------------------

    def _batch_bytes(self, effect: effects.AppendToLog, arrival: Arrival) -> list[Buffer]:
        """Finds the bytes that arrived with the input of this step, or with a request that had to wait."""
        for kept in self._kept:
            if _carries(kept, effect):
                return batch_bytes(kept.incoming, kept.attachments, effect.partition, count=len(effect.batches))
        return super()._batch_bytes(effect, arrival)

    def _done_with(self, arrival: Arrival) -> None:
        waiting = self._broker.held_requests
        if waiting and isinstance(arrival.incoming, inputs.RequestReceived) and arrival.incoming.request_id in waiting:
            self._kept.append(arrival)
            return
        super()._done_with(arrival)
        handled = [each for each in self._kept if _request_id(each) not in waiting]
        self._kept = [each for each in self._kept if _request_id(each) in waiting]
        for each in handled:
            super()._done_with(each)


def _request_id(arrival: Arrival) -> int:
    assert isinstance(arrival.incoming, inputs.RequestReceived), "only requests wait"
    return arrival.incoming.request_id


def _carries(arrival: Arrival, effect: effects.AppendToLog) -> bool:
    """Returns whether the batches to append arrived with a request: no two batches of a partition have one checksum."""
    assert isinstance(arrival.incoming, inputs.RequestReceived), "only requests wait"
    request = arrival.incoming.request
    return isinstance(request, messages.ProduceRequest) and any(
        entry.topic_partition == effect.partition and getattr(entry.batch, "crc", None) == effect.batches[0].crc
        for entry in request.partitions
    )
