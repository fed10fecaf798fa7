"""A broker's process: receive, step, write files, record, send; repeat.

The core identifies batches by their headers, so an input that carries batches comes with their bytes, one block per
partition of its message, and the effects of that same step find them there. Spans of a fetch response become bytes when
the core returns the response, before anything can truncate them, and are sent after the turn's events are written.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias, assert_never

import msgspec

from laststand.emulator.core import effects, events, inputs, messages
from laststand.emulator.core.broker.kraft.broker import Broker
from laststand.emulator.core.broker.replicas.config import BrokerConfig
from laststand.emulator.core.coordinator_records import CoordinatorRecord, EncodedBatch
from laststand.emulator.core.errors import InvariantError, StorageError
from laststand.emulator.core.node_clock import NodeClock
from laststand.emulator.core.types import Acks, BrokerId, BrokerState, CauseId, IncarnationId, RequestId
from laststand.emulator.core.zookeeper import exchange
from laststand.emulator.node.batch_bytes import batch_bytes, parse_fetched, parse_produced
from laststand.emulator.node.broker_files import BrokerFiles
from laststand.emulator.node.cause_ids import CauseIds
from laststand.emulator.node.config import KafkaConfig, NodeConfig
from laststand.emulator.node.event_log import log_event
from laststand.emulator.node.event_writer import EventWriter
from laststand.emulator.node.known_failures import KnownFailures
from laststand.emulator.node.log_maintenance import LogMaintenance
from laststand.emulator.node.node_server import make_node_server
from laststand.emulator.node.request_table import RequestTable
from laststand.emulator.node.turn_loop import TurnLoop, monotonic_ms
from laststand.emulator.rpc.address_book import AddressBook
from laststand.emulator.rpc.channel import keepalive_for
from laststand.emulator.rpc.inbound import Responder
from laststand.emulator.rpc.metadata_stream import read_metadata
from laststand.emulator.rpc.outbound import ChannelRole, Deliver, Outbound, Outcome
from laststand.emulator.storage.coordinator_records import decode_log, encode_records
from laststand.emulator.storage.filesystem import Buffer, FileSystem
from laststand.emulator.storage.log_scan import LogScan

if TYPE_CHECKING:
    from laststand.emulator.core.broker.zookeeper.broker import ZooKeeperBroker
    from laststand.emulator.kafka_listener.gateway import Controller, CoreGateway
    from laststand.emulator.kafka_listener.listener import KafkaListener
    from laststand.emulator.node.metrics_server import ServedMetrics
    from laststand.emulator.node.produce_times import ProduceTimes

_STOP_GRACE_S: Final = 0.2

Departure: TypeAlias = Callable[[], None]


class Arrival(msgspec.Struct, frozen=True, kw_only=True):
    """An input, and the record bytes that arrived with it: one block per partition of its message."""

    incoming: inputs.BrokerInput | exchange.ZooKeeperInput
    attachments: tuple[bytes, ...] = ()


class BrokerShell:
    """Runs a broker. Create it on the event loop.

    Args:
        config: of this incarnation.
        events: its event log, already opened.
        incarnation_id: drawn for this process.

    Raises:
        StorageError: a log directory is in use, unreadable, or of another node.
        ConfigError: impossible properties.
    """

    def __init__(
        self, config: NodeConfig, events: EventWriter, incarnation_id: IncarnationId, filesystem: FileSystem
    ) -> None:
        properties = config.node_properties()
        self._config = config
        self._has_authorizer = bool(properties.authorizer_class_name)
        self._events = events
        self._files = BrokerFiles(
            filesystem,
            config.data_dirs,
            cluster_id=config.cluster_id,
            node_id=config.node_id,
            properties=properties,
            switches=config.switches,
            topic_properties_of=lambda topic: self._broker.topic_properties(topic),
        )
        self._core_config = BrokerConfig(
            broker_id=BrokerId(config.node_id),
            controller_ids=config.controller_ids,
            cluster_id=config.cluster_id,
            incarnation_id=incarnation_id,
            log_dirs=self._files.directory_ids,
            previous_broker_epoch=self._files.previous_broker_epoch(),
            properties=properties,
            switches=config.switches,
        )
        self._broker = self._make_broker(self._core_config)
        self._causes = CauseIds(node_id=config.node_id, incarnation=config.incarnation)
        self._requests = RequestTable()
        self._clock = NodeClock()
        self._clock.set_rate(config.clock_rate_ppm, now_ms=monotonic_ms())
        self._loop: TurnLoop[Arrival] = TurnLoop(
            clock=self._clock,
            run_turn=self._run_turn,
            next_deadline_ms=self._next_deadline_ms,
            timer_input=lambda: Arrival(incoming=inputs.TimerFired(cause_id=self._causes.timer())),
        )
        self._keepalive = keepalive_for(session_timeout_ms=properties.broker_session_timeout_ms)
        self._token = config.token()
        self._server = make_node_server(
            config,
            keepalive=self._keepalive,
            token=self._token,
            on_request=self._receive,
            record=self.record_between_turns,
            clock=self._clock,
            rearm=self._loop.rearm,
            is_healthy=self._can_lead,
        )
        self._server.add_broker(parse_produced)
        self._departures: list[Departure] = []
        self._transactional: dict[RequestId, Arrival] = {}
        self._stopped = asyncio.Event()
        self._metrics: ServedMetrics | None = None
        self._failures = KnownFailures()
        self._produce_times: ProduceTimes | None = None
        self._kafka: KafkaListener | None = None
        self._logs_task: asyncio.Task[None] | None = None
        self._metadata_task: asyncio.Task[None] | None = None
        self._reading_tasks: set[asyncio.Task[None]] = set()

    # --- The core -------------------------------------------------------------------------------------------------

    def _make_broker(self, config: BrokerConfig) -> "Broker | ZooKeeperBroker":
        """Makes the core; returns the broker in it, for inspection."""
        self._kraft_broker = Broker(config, self._encode_records)
        return self._kraft_broker

    @staticmethod
    def _encode_records(records: Sequence[CoordinatorRecord]) -> EncodedBatch:
        return encode_records(records, timestamp_ms=time.time_ns() // 1_000_000)

    def _next_deadline_ms(self) -> int | None:
        return self._kraft_broker.next_deadline_ms()

    def _step(
        self, incoming: inputs.BrokerInput | exchange.ZooKeeperInput, *, now_ms: int
    ) -> Iterable[effects.BrokerEffect]:
        """Passes an input to the core; yields the effects that this process executes itself, in order."""
        if isinstance(incoming, exchange.ZooKeeperInput):
            raise InvariantError(f"{type(incoming).__name__} is nothing to a broker of a KRaft cluster")
        return self._kraft_broker.step(incoming, now_ms=now_ms)

    # --- The process ----------------------------------------------------------------------------------------------

    async def listen(self) -> int:
        """Binds the port and returns it; requests wait until ``run``."""
        return await self._server.start(f"{self._config.host}:{self._config.port}")

    def _can_lead(self) -> bool:
        """Returns whether this broker is unfenced, as far as it knows."""
        registration = self._broker.image.brokers.get(BrokerId(self._config.node_id))
        is_unfenced = registration is not None and not registration.fenced
        return self._broker.state is BrokerState.RUNNING and is_unfenced

    async def serve_kafka(self, config: KafkaConfig) -> None:
        """Listens for clients of Apache Kafka; they are served once this broker is unfenced, as in Kafka."""
        # Imported where it is asked for: everybody else starts without it.
        from laststand.emulator.kafka_listener.listener import KafkaListener

        self._kafka = KafkaListener(
            self._server.interceptor, self._config.node_properties(), record=self.record_between_turns
        )
        await self._kafka.start(self._config.host, {each.client_id: each.port for each in config.listeners})

    async def serve_metrics(self, port: int) -> int:
        """Serves ``/metrics`` from now on and returns the port."""
        # Imported where it is asked for: the library costs as much of a start as all else that is ours.
        from laststand.emulator.node.broker_metrics import BrokerMetrics
        from laststand.emulator.node.metrics_server import ServedMetrics

        metrics = BrokerMetrics(self._broker, BrokerId(self._config.node_id))
        self._metrics, self._produce_times = ServedMetrics(metrics), metrics.produce_times
        return await self._metrics.start(self._config.host, port, self._token.dialled_context)

    async def run(self) -> None:
        """Runs until the core wants the process to end."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            self._outbound = self._make_outbound(self._deliver)
            self._loop.start(Arrival(incoming=inputs.Started(cause_id=self._causes.start())))
            try:
                await self._stopped.wait()
            except asyncio.CancelledError:
                self._loop.stop()  # a task has failed: no turn may fail, too, and hide why
                raise
            for task in (self._logs_task, self._metadata_task, *self._reading_tasks):
                if task is not None:
                    task.cancel()
            if self._metrics is not None:
                self._metrics.close()
            if self._kafka is not None:
                await self._kafka.close()
            await self._server.stop(grace_s=_STOP_GRACE_S)
            await self._outbound.close()

    def request_shutdown(self) -> None:
        """Asks the core to end in order."""
        self._enqueue(inputs.ShutdownRequested(cause_id=self._causes.shutdown()))

    # --- What comes in --------------------------------------------------------------------------------------------

    def _enqueue(self, incoming: inputs.BrokerInput | exchange.ZooKeeperInput) -> None:
        self._loop.enqueue(Arrival(incoming=incoming))

    def _enqueue_first(self, incoming: inputs.BrokerInput) -> None:
        self._loop.enqueue_first(Arrival(incoming=incoming))

    def record_between_turns(self, event: events.BrokerEvent) -> None:
        """Writes an event at once; no other event waits for its write."""
        if self._metrics is not None:
            self._metrics.count(event)
        if self._failures.is_known(event):
            return
        log_event(event)
        self._events.add(event)
        self._events.flush()

    def _receive(
        self, request: messages.Request, cause_id: CauseId, attachments: tuple[bytes, ...], responder: Responder
    ) -> None:
        if self._produce_times is not None and isinstance(request, messages.ProduceRequest):
            responder = self._produce_times.timed(responder)
        received = inputs.RequestReceived(
            cause_id=cause_id,
            request_id=self._requests.add(responder),
            request=request,
            requester=responder.requester if self._has_authorizer else None,
        )
        arrival = Arrival(incoming=received, attachments=attachments)
        if isinstance(request, messages.ProduceRequest) and request.transactional_id is not None:
            self._transactional[received.request_id] = arrival
        self._loop.enqueue(arrival)

    def _deliver(self, outcome: Outcome, attachments: tuple[bytes, ...]) -> None:
        self._loop.enqueue(Arrival(incoming=outcome, attachments=attachments))

    def _open_kafka(self, listener: "KafkaListener") -> None:
        from laststand.emulator.core.authorizer.authorizer import authorizer_of
        from laststand.emulator.core.authorizer.denials import RecordingAuthorizer
        from laststand.emulator.core.client_quotas import CONSUMER_BYTE_RATE, PRODUCER_BYTE_RATE
        from laststand.emulator.kafka_listener.client_history import ClientHistory
        from laststand.emulator.kafka_listener.fetch_sessions import FetchSessions
        from laststand.emulator.kafka_listener.gateway import CoreGateway
        from laststand.emulator.kafka_listener.key_file import KeyFile
        from laststand.emulator.kafka_listener.quota_usage import QuotaUsage
        from laststand.emulator.kafka_listener.releases import served_versions
        from laststand.emulator.kafka_listener.requests import Endpoint, Served
        from laststand.emulator.kafka_listener.sasl import sasl_config

        config = self._config.kafka
        assert config is not None, "it listens"
        authorizer = authorizer_of(self._core_config.properties, self._broker.image.acls)
        core = CoreGateway(self._receive, name=f"{self._config.node_id}-{self._config.incarnation}")
        served = Served(
            broker_id=BrokerId(self._config.node_id),
            cluster_id=self._config.cluster_id,
            controllers={
                node_id: Endpoint.parse(self._config.addresses[node_id]) for node_id in self._config.controller_ids
            },
            broker=self._broker,
            log_dir=self._config.data_dirs[0],
            properties=self._config.node_properties(),
            versions=served_versions(self._config.rules()),
            endpoints={},
            core=core,
            controller=self._controller_for_clients(core),
            fetch_sessions=FetchSessions(),
            history=ClientHistory(
                Path(config.history),
                broker_id=BrokerId(self._config.node_id),
                incarnation=self._config.incarnation,
                keys=KeyFile(Path(config.keys)),
            ),
            produced=QuotaUsage(PRODUCER_BYTE_RATE),
            fetched=QuotaUsage(CONSUMER_BYTE_RATE),
            note_order=self.record_between_turns,
            note_denial=self.record_between_turns,
            sasl=sasl_config(self._core_config.properties),
            permissions=None if authorizer is None else RecordingAuthorizer(authorizer),
            transaction_version=self._core_config.transaction_version,
        )
        endpoints = {
            each.client_id: {broker_id: Endpoint.parse(address) for broker_id, address in each.advertised.items()}
            for each in config.listeners
        }
        listener.open(served, endpoints)

    def _controller_for_clients(self, _: "CoreGateway") -> "Controller":
        from laststand.emulator.kafka_listener.gateway import ControllerGateway

        return ControllerGateway(self._make_outbound, self._config.controller_ids)

    def _make_outbound(self, deliver: Deliver) -> Outbound:
        return Outbound(
            addresses=AddressBook(self._config.addresses),
            dialler=self._config.node_id,
            keepalive=self._keepalive,
            token=self._token,
            tasks=self._tasks,
            parse_fetched=parse_fetched,
            deliver=deliver,
            controller_id=self._config.controller_id,
        )

    # --- Turns ----------------------------------------------------------------------------------------------------

    def _run_turn(self, arrivals: list[Arrival]) -> None:
        turn_ns = time.monotonic_ns()
        now_ms = self._clock.local_ms(monotonic_ms(turn_ns))
        end: effects.CloseLogs | effects.StopNode | None = None
        for arrival in arrivals:
            for effect in self._step(arrival.incoming, now_ms=now_ms):
                match effect:
                    case effects.CloseLogs() | effects.StopNode():
                        end = effect
                    case _:
                        self._execute(effect, arrival)
            self._done_with(arrival)
        self._files.sync_names()
        self._events.flush(at_ns=turn_ns)
        departures, self._departures = self._departures, []
        for depart in departures:
            depart()
        if self._kafka is not None and not self._kafka.is_open and self._can_lead():
            self._open_kafka(self._kafka)
        if end is not None:
            self._end(end)

    def _execute(self, effect: effects.BrokerEffect, arrival: Arrival) -> None:
        match effect:
            case effects.RecordEvent(event=event):
                log_event(event)
                self._events.add(event)
                if self._metrics is not None:
                    self._metrics.count(event)
            case effects.AppendToLog(partition=partition, batches=batches, contents=contents):
                self._files.append(partition, batches, contents or self._batch_bytes(effect, arrival))
            case effects.SendResponse():
                self._answer(effect)
            case effects.SendRequest():
                self._departures.append(lambda: self._send(effect))
            case effects.CloseConnection(request_id=request_id):
                self._departures.append(self._requests.pop(request_id).disconnect)
            case effects.TruncateLog(partition=partition, offset=offset):
                self._files.truncate(partition, offset)
            case effects.RestartLog(partition=partition, offset=offset):
                self._files.restart(partition, offset)
            case effects.SyncLog(partition=partition):
                self._files.sync(partition)
            case effects.WriteEpochCheckpoint(partition=partition, epochs=epochs):
                self._files.write_epochs(partition, epochs)
            case effects.RaiseLogStart(partition=partition, offset=offset):
                self._files.raise_log_start(partition, offset)
            case effects.CreateLog(partition=partition, topic_id=topic_id):
                self._files.create(partition, topic_id)
            case effects.DeleteLog(partition=partition):
                self._files.delete(partition, now_ms=monotonic_ms())
            case effects.RenameStrayLog(partition=partition):
                self._files.rename_stray(partition)
            case effects.DeleteStrayLog(partition=partition, topic_id=topic_id):
                self._files.delete_stray(inputs.StrayLog(partition=partition, topic_id=topic_id))
            case effects.RecoverLog(partition=partition):
                scan = self._files.recovery_scan(partition)
                self._start(self._scan(effect, scan, arrival.incoming.cause_id))
            case effects.ReadRecords(partition=partition, span=span):
                content = b"" if span is None else self._files.read(partition, span)
                self._start(self._read_records(effect, content, arrival.incoming.cause_id))
            case effects.WriteHighWatermarks(high_watermarks=high_watermarks):
                self._files.write_high_watermarks(high_watermarks)
            case effects.WriteLogCheckpoints():
                self._files.write_checkpoints()
            case effects.LoadLogs():
                self._logs_task = self._tasks.create_task(self._maintain_logs(arrival.incoming.cause_id))
            case effects.OpenMetadataStream():
                self._departures.append(lambda: self._open_metadata_stream(effect))
            case effects.CloseLogs() | effects.StopNode():
                raise AssertionError("the end of the process is not executed among other effects")
            case _:
                assert_never(effect)

    def _batch_bytes(self, effect: effects.AppendToLog, arrival: Arrival) -> list[Buffer]:
        if effect.request_id is not None:
            arrival = self._transactional[effect.request_id]
        return batch_bytes(arrival.incoming, arrival.attachments, effect.partition, count=len(effect.batches))

    def _answer(self, effect: effects.SendResponse) -> None:
        responder = self._requests.pop(effect.request_id)
        self._transactional.pop(effect.request_id, None)
        attachments: Sequence[bytes] = ()
        if isinstance(effect.response, messages.FetchResponse):
            attachments = [
                b"" if answer.span is None else self._files.read(answer.topic_partition, answer.span)
                for answer in effect.response.partitions
            ]
        self._departures.append(
            lambda: responder.answer(effect.response, cause_id=effect.cause_id, attachments=attachments)
        )

    def _send(self, effect: effects.SendRequest) -> None:
        self._outbound.send(
            destination=effect.destination,
            correlation_id=effect.correlation_id,
            request=effect.request,
            timeout_ms=effect.timeout_ms,
            cause_id=effect.cause_id,
        )

    def _done_with(self, arrival: Arrival) -> None:
        """A produce request with acks=0 gets no answer; a failure has closed its connection by now."""
        incoming = arrival.incoming
        if isinstance(incoming, inputs.RequestReceived):
            request = incoming.request
            if isinstance(request, messages.ProduceRequest) and request.acks == Acks.NONE:
                self._requests.forget(incoming.request_id)

    # --- What takes longer than a turn ----------------------------------------------------------------------------

    async def _maintain_logs(self, cause_id: CauseId) -> None:
        # In a thread, which alone touches them until it is done: heartbeats go on during a long recovery.
        logs = await asyncio.to_thread(self._files.load)
        loaded = inputs.LogsLoaded(
            cause_id=cause_id, logs=logs, strays=self._files.strays, failed_log_dirs=self._files.failed_ids
        )
        self._enqueue(loaded)
        maintenance = LogMaintenance(
            self._files,
            self._broker,
            self._config.node_properties(),
            enqueue_first=self._enqueue_first,
            record=self.record_between_turns,
        )
        await maintenance.run(self._causes)

    def _start(self, reading: Coroutine[None, None, None]) -> None:
        task = self._tasks.create_task(reading)
        self._reading_tasks.add(task)
        task.add_done_callback(self._reading_tasks.discard)

    async def _read_records(self, effect: effects.ReadRecords, content: bytes, cause_id: CauseId) -> None:
        # In a thread: a large group's log takes longer to decode than a turn may.
        records = await asyncio.to_thread(decode_log, content, topic=effect.partition.topic)
        read = inputs.RecordsRead(
            cause_id=cause_id, partition=effect.partition, leader_epoch=effect.leader_epoch, records=records
        )
        self._enqueue(read)

    async def _scan(self, effect: effects.RecoverLog, scan: LogScan, cause_id: CauseId) -> None:
        try:
            found = await asyncio.to_thread(scan.run)
        except StorageError:
            partition = self._broker.partition(effect.partition)
            if partition is not None and partition.is_leader and partition.leader_epoch == effect.leader_epoch:
                raise
            return  # led by another since, which had the files cut or set aside: nobody waits for this any more
        recovered = inputs.LogRecovered(
            cause_id=cause_id,
            partition=effect.partition,
            leader_epoch=effect.leader_epoch,
            scanned_from=found.start_offset,
            batch_count=found.batch_count,
            bad_offset=found.bad_offset,
        )
        self._enqueue(recovered)

    def _open_metadata_stream(self, effect: effects.OpenMetadataStream) -> None:
        if self._metadata_task is not None:
            self._metadata_task.cancel()
        channel = self._outbound.channel(effect.destination, ChannelRole.METADATA)
        self._metadata_task = self._tasks.create_task(
            read_metadata(
                channel,
                from_offset=effect.from_offset,
                cause_id=self._causes.stream(),
                controller_epoch=effect.controller_epoch,
                deliver=self._enqueue,
            )
        )

    def _end(self, effect: effects.CloseLogs | effects.StopNode) -> None:
        self._loop.stop()
        match effect:
            case effects.CloseLogs(broker_epoch=broker_epoch):
                self._files.close(broker_epoch)
            case effects.StopNode(proven_epoch=proven_epoch):
                if proven_epoch is not None:
                    self._files.renew_proof(proven_epoch)
        self._stopped.set()
