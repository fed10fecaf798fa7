"""The process of a controller, the only one or one of several: receive, step, write and sync, record, send; repeat."""

import asyncio
import secrets
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, assert_never

from laststand.emulator.core import effects, events, messages
from laststand.emulator.core.controller.controller import Controller
from laststand.emulator.core.inputs import (
    ControllerInput,
    NumberDrawn,
    RequestReceived,
    ShutdownRequested,
    Started,
    TimerFired,
)
from laststand.emulator.core.node_clock import NodeClock
from laststand.emulator.core.quorum_controller.effects import ServeMetadata
from laststand.emulator.core.requester import Requester
from laststand.emulator.core.types import CauseId
from laststand.emulator.node.batch_bytes import parse_fetched
from laststand.emulator.node.cause_ids import CauseIds
from laststand.emulator.node.config import NodeConfig
from laststand.emulator.node.controller_turn import ControllerTurns
from laststand.emulator.node.event_log import log_event
from laststand.emulator.node.event_writer import EventWriter
from laststand.emulator.node.known_failures import KnownFailures
from laststand.emulator.node.metadata_hub import MetadataHub
from laststand.emulator.node.metadata_journal import MetadataJournal
from laststand.emulator.node.node_server import make_node_server
from laststand.emulator.node.quorum_turn import QuorumTurns
from laststand.emulator.node.request_table import RequestTable
from laststand.emulator.node.turn_loop import TurnLoop, monotonic_ms
from laststand.emulator.node.unreported_events import event_files, read_reported, unreported_events
from laststand.emulator.rpc.address_book import AddressBook
from laststand.emulator.rpc.channel import keepalive_for
from laststand.emulator.rpc.inbound import Responder
from laststand.emulator.rpc.outbound import Outbound, Outcome
from laststand.emulator.storage.filesystem import FileSystem
from laststand.emulator.storage.log_directory import make_log_directory

if TYPE_CHECKING:
    from laststand.emulator.node.metrics_server import ServedMetrics

_STOP_GRACE_S: Final = 0.2
_DRAW_BITS: Final = 31


class ControllerShell:
    """Runs a controller. Create it on the event loop.

    Args:
        config: of this incarnation.
        events: its event log, already opened.

    Raises:
        StorageError: the metadata log cannot be read.
        ConfigError: impossible properties.
    """

    def __init__(self, config: NodeConfig, events: EventWriter, filesystem: FileSystem) -> None:
        properties = config.node_properties()
        self._config = config
        self._events = events
        self._causes = CauseIds(node_id=config.node_id, incarnation=config.incarnation)
        self._clock = NodeClock()
        self._clock.set_rate(config.clock_rate_ppm, now_ms=monotonic_ms())
        self._turns: ControllerTurns | QuorumTurns
        make_log_directory(filesystem, config.data_dirs[0])
        if len(config.controller_ids) == 1:
            journal = MetadataJournal(filesystem, config.data_dirs[0])
            controller = Controller(properties, config.switches, config.cluster_id, config.node_id)
            self._turns = ControllerTurns(controller, journal)
            self._unreported = self._find_unreported(journal.events)
            self._hub = MetadataHub(journal.batches, cause_id=self._causes.start(), is_authorized=self._may_read)
        else:
            now_ms = self._clock.local_ms(monotonic_ms())
            self._turns = QuorumTurns(config, filesystem, now_ms=now_ms, unreported=self._find_unreported)
            self._unreported = ()
            self._hub = MetadataHub((), cause_id=self._causes.start(), is_authorized=self._may_read, served_epoch=None)
        self._requests = RequestTable()
        self._stopped = asyncio.Event()
        self._metrics: ServedMetrics | None = None
        self._failures = KnownFailures()
        self._loop: TurnLoop[ControllerInput] = TurnLoop(
            clock=self._clock,
            run_turn=self._run_turn,
            next_deadline_ms=self._turns.next_deadline_ms,
            timer_input=lambda: TimerFired(cause_id=self._causes.timer()),
        )
        self._keepalive = keepalive_for(session_timeout_ms=properties.broker_session_timeout_ms)
        self._outbound: Outbound
        self._token = config.token()
        self._server = make_node_server(
            config,
            keepalive=self._keepalive,
            token=self._token,
            on_request=self._receive,
            record=self.record_between_turns,
            clock=self._clock,
            rearm=self._loop.rearm,
            is_healthy=lambda: not self._stopped.is_set(),
        )
        self._server.add_controller(self._hub.subscribe)
        if isinstance(self._turns, QuorumTurns):
            self._server.add_quorum()

    async def listen(self) -> int:
        """Binds the port and returns it; requests wait until ``run``."""
        return await self._server.start(f"{self._config.host}:{self._config.port}")

    async def serve_metrics(self, port: int) -> int:
        """Serves ``/metrics`` from now on and returns the port."""
        # Imported where it is asked for: the library costs as much of a start as all else that is ours.
        from laststand.emulator.node.controller_metrics import ControllerMetrics
        from laststand.emulator.node.metrics_server import ServedMetrics

        self._metrics = ServedMetrics(ControllerMetrics(lambda: self._turns.active))
        return await self._metrics.start(self._config.host, port, self._token.dialled_context)

    async def run(self) -> None:
        """Runs until the core wants the process to end."""
        for event in self._unreported:
            self._events.add(event)
        async with asyncio.TaskGroup() as tasks:
            self._outbound = Outbound(
                addresses=AddressBook(self._config.addresses),
                dialler=self._config.node_id,
                keepalive=self._keepalive,
                token=self._token,
                tasks=tasks,
                parse_fetched=parse_fetched,
                deliver=self._deliver,
            )
            self._loop.start(Started(cause_id=self._causes.start()))
            try:
                await self._stopped.wait()
            except asyncio.CancelledError:
                self._loop.stop()  # a task has failed: no turn may fail, too, and hide why
                raise
            self._hub.close()
            if self._metrics is not None:
                self._metrics.close()
            await self._server.stop(grace_s=_STOP_GRACE_S)
            await self._outbound.close()

    def request_shutdown(self) -> None:
        """Asks the core to end in order."""
        self._loop.enqueue(ShutdownRequested(cause_id=self._causes.shutdown()))

    def _may_read(self, requester: Requester | None) -> bool:
        active = self._turns.active
        return active is not None and active.may_read_metadata(requester)

    def _find_unreported(self, kept: Sequence[events.ControllerEvent]) -> Sequence[events.ControllerEvent]:
        """Returns the events that no other controller process has written to its event file."""
        files = event_files(self._config.event_file, self._config.controller_ids)
        return unreported_events(kept, read_reported(files))

    def record_between_turns(self, event: events.ControllerEvent) -> None:
        """Writes an event at once; no other event waits for its write."""
        if self._metrics is not None:
            self._metrics.count(event)
        if self._failures.is_known(event):
            return
        log_event(event)
        self._events.add(event)
        self._events.flush()

    def _receive(
        self, request: messages.Request, cause_id: CauseId, _attachments: tuple[bytes, ...], responder: Responder
    ) -> None:
        request_id = self._requests.add(responder)
        self._loop.enqueue(
            RequestReceived(cause_id=cause_id, request_id=request_id, request=request, requester=responder.requester)
        )

    def _deliver(self, outcome: Outcome, _attachments: tuple[bytes, ...]) -> None:
        self._loop.enqueue(outcome)

    def _run_turn(self, inputs: list[ControllerInput]) -> None:
        turn_ns = time.monotonic_ns()
        events, departures = self._turns.run(inputs, now_ms=self._clock.local_ms(monotonic_ms(turn_ns)))
        for event in events:
            log_event(event)
            self._events.add(event)
            if self._metrics is not None:
                self._metrics.count(event)
        self._events.flush(at_ns=turn_ns)
        for departure in departures:
            match departure:
                case effects.SendRequest():
                    self._outbound.send(
                        destination=departure.destination,
                        correlation_id=departure.correlation_id,
                        request=departure.request,
                        timeout_ms=departure.timeout_ms,
                        cause_id=departure.cause_id,
                    )
                case effects.SendResponse(request_id=request_id, response=response, cause_id=cause_id):
                    self._requests.pop(request_id).answer(response, cause_id=cause_id, attachments=())
                case effects.PublishMetadata(batch=batch, cause_id=cause_id):
                    self._hub.publish(batch, cause_id=cause_id)
                case ServeMetadata(controller_epoch=controller_epoch):
                    self._hub.serve(controller_epoch)
                case effects.DrawNumber():
                    number = secrets.randbits(_DRAW_BITS)
                    self._loop.enqueue_first(NumberDrawn(cause_id=self._causes.draw(), number=number))
                case effects.StopNode():
                    self._loop.stop()
                    self._stopped.set()
                case _:
                    assert_never(departure)
