r"""A broker's life with its controller: registration, heartbeats, controlled shutdown (``BrokerLifecycleManager``).

States and edges (Kafka's ``BrokerLifecycleManager``)::

    NOT_RUNNING -> STARTING -> RECOVERY -> RUNNING -> PENDING_CONTROLLED_SHUTDOWN -> SHUTTING_DOWN
                          \___________\________\____________________________________^

One request is in flight at a time, so answers come in the order of the requests. A running broker ignores a heartbeat
response that calls it fenced: it stays leader until metadata says otherwise.
"""

from typing import Final

from laststand.emulator.core import events, messages
from laststand.emulator.core.broker.kraft.controller_channel import ControllerChannel
from laststand.emulator.core.broker.replicas.config import BrokerConfig
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.release import features_of
from laststand.emulator.core.types import BrokerEpoch, BrokerId, BrokerState, MetadataOffset

STARTING_INTERVAL_MS: Final = 10
"""Between heartbeats until the controller says that this broker has caught up."""

SHUTDOWN_INTERVAL_MS: Final = 50
"""Before the second heartbeat of a controlled shutdown."""

NODE_MARK: Final = "{node}"
"""In ``broker.rack``: stands for the broker's id, because all nodes of a cluster share their properties."""

_BACKOFF_INITIAL_MS: Final = 20


def rack_of(broker_id: BrokerId, broker_rack: str) -> str:
    """Returns a broker's rack: ``broker.rack``, or one of several racks in it, which brokers take in turn."""
    racks = broker_rack.split(",")
    return racks[broker_id % len(racks)].strip().replace(NODE_MARK, str(broker_id))


class BrokerLifecycle:
    """The state machine.

    Attributes:
        state: where it is.
        broker_epoch: the granted epoch; ``None`` before registration.
        applied_end_offset: end (exclusive) of the metadata that this broker acts on.
        offline_log_dirs: failed directories, in the order of their failures; none comes back online.
    """

    def __init__(self, config: BrokerConfig, controllers: ControllerChannel) -> None:
        self.state = BrokerState.NOT_RUNNING
        self.broker_epoch: BrokerEpoch | None = None
        self.applied_end_offset = MetadataOffset(0)
        self.offline_log_dirs: list[str] = []
        self._config = config
        self._controllers = controllers
        self._is_ready = False
        self._is_in_flight = False
        self._is_urgent = False
        self._next_send_ms: int | None = None
        self._give_up_ms: int | None = None
        self._failures = 0
        self._shutdown_answers = 0
        self._refused_with = ErrorCode.NONE

    @property
    def is_exiting(self) -> bool:
        """The process is about to end."""
        return self.state is BrokerState.SHUTTING_DOWN

    def next_deadline_ms(self) -> int | None:
        """Returns when ``handle_timer`` has something to do."""
        if self.is_exiting:
            return None
        if self._next_send_ms is None or self._give_up_ms is None:
            return self._give_up_ms if self._next_send_ms is None else self._next_send_ms
        return min(self._next_send_ms, self._give_up_ms)

    def start(self, turn: Turn) -> None:
        """Registers; gives up after ``initial.broker.registration.timeout.ms``."""
        self._enter(turn, BrokerState.STARTING)
        self._give_up_ms = turn.now_ms + self._config.properties.initial_broker_registration_timeout_ms
        self._communicate(turn)

    def become_ready(self, turn: Turn) -> None:
        """Asks to be unfenced from the next heartbeat on, which goes out at once."""
        if not self._is_ready:
            self._is_ready = True
            self.heartbeat_now(turn)

    def heartbeat_now(self, turn: Turn) -> None:
        """Sends the next heartbeat as soon as none is in flight, as there is something to report."""
        if self.broker_epoch is None or self.is_exiting:
            return
        if self._is_in_flight:
            self._is_urgent = True
        else:
            self._communicate(turn)

    def fail_log_dir(self, turn: Turn, log_dir: str) -> None:
        """Reports a directory as offline from the next heartbeat on."""
        self.offline_log_dirs.append(log_dir)
        self.heartbeat_now(turn)

    def begin_shutdown(self, turn: Turn) -> None:
        """Asks the controller for a controlled shutdown if this broker runs; otherwise the process ends at once."""
        if self.state is BrokerState.RUNNING and self._config.properties.controlled_shutdown_enable:
            self._enter(turn, BrokerState.PENDING_CONTROLLED_SHUTDOWN)
            # After a session without answers, the controller has moved the leaderships, or has failed itself.
            self._give_up_ms = turn.now_ms + self._config.properties.broker_session_timeout_ms
            self.heartbeat_now(turn)
        elif self.state is not BrokerState.PENDING_CONTROLLED_SHUTDOWN:
            self.end(turn)

    def end(self, turn: Turn) -> None:
        """Stops sending requests, as the process is about to end."""
        self._next_send_ms = self._give_up_ms = None
        self._enter(turn, BrokerState.SHUTTING_DOWN)

    def handle_timer(self, turn: Turn) -> None:
        """Sends what is due, or gives up."""
        if self._give_up_ms is not None and self._give_up_ms <= turn.now_ms:
            self.end(turn)
        elif self._next_send_ms is not None and self._next_send_ms <= turn.now_ms and not self._is_in_flight:
            self._communicate(turn)

    def handle_registration(self, turn: Turn, response: messages.BrokerRegistrationResponse) -> None:
        """Adopts the broker epoch, or tries again after a heartbeat interval, and says why once."""
        self._is_in_flight = False
        if self.is_exiting:
            return
        if response.error is not ErrorCode.NONE or response.broker_epoch is None:
            if response.error not in (self._refused_with, ErrorCode.DUPLICATE_BROKER_REGISTRATION):
                self._refused_with = response.error
                broker_id, error = self._config.broker_id, response.error.name
                turn.record(events.RegistrationRefused(cause_id=turn.cause_id, broker_id=broker_id, error=error))
            self._next_send_ms = turn.now_ms + self._config.properties.broker_heartbeat_interval_ms
            return
        self._failures = 0
        self._give_up_ms = None
        self.broker_epoch = response.broker_epoch
        self._communicate(turn)

    def handle_heartbeat(self, turn: Turn, response: messages.BrokerHeartbeatResponse) -> None:
        """Adopts the state that the controller reports; after an error, the next heartbeat follows an interval later.

        This includes STALE_BROKER_EPOCH. Kafka uses the fixed interval since 4.1
        (``BrokerLifecycleManager.scheduleNextCommunicationAfterFailure``).
        """
        self._is_in_flight = False
        if self.is_exiting:
            return
        if response.error is not ErrorCode.NONE:
            self._next_send_ms = turn.now_ms + self._config.properties.broker_heartbeat_interval_ms
            return
        self._failures = 0
        if self.state is BrokerState.STARTING and response.is_caught_up:
            self._enter(turn, BrokerState.RECOVERY)
        if self.state is BrokerState.RECOVERY and not response.is_fenced:
            self._enter(turn, BrokerState.RUNNING)
        interval_ms = self._config.properties.broker_heartbeat_interval_ms
        match self.state:
            case BrokerState.STARTING:
                interval_ms = min(interval_ms, STARTING_INTERVAL_MS)
            case BrokerState.PENDING_CONTROLLED_SHUTDOWN:
                if response.should_shut_down:
                    self.end(turn)
                    return
                self._give_up_ms = turn.now_ms + self._config.properties.broker_session_timeout_ms
                self._shutdown_answers += 1
                if self._shutdown_answers == 1:
                    interval_ms = min(interval_ms, SHUTDOWN_INTERVAL_MS)
        self._next_send_ms = turn.now_ms + interval_ms
        if self._is_urgent:
            self._communicate(turn)

    def handle_failure(self, turn: Turn) -> None:
        """Handles a request without an answer: retries after an exponential backoff, up to the heartbeat interval."""
        self._is_in_flight = False
        if not self.is_exiting:
            self._back_off(turn)

    def _back_off(self, turn: Turn) -> None:
        interval_ms = self._config.properties.broker_heartbeat_interval_ms
        self._next_send_ms = turn.now_ms + min(interval_ms, _BACKOFF_INITIAL_MS << min(self._failures, 16))
        self._failures += 1

    def _communicate(self, turn: Turn) -> None:
        self._is_in_flight = True
        self._is_urgent = False
        self._next_send_ms = None
        config = self._config
        request: messages.BrokerRegistrationRequest | messages.BrokerHeartbeatRequest
        if self.broker_epoch is None:
            request = messages.BrokerRegistrationRequest(
                broker_id=config.broker_id,
                cluster_id=config.cluster_id,
                incarnation_id=config.incarnation_id,
                log_dirs=config.log_dirs,
                features=features_of(config.switches),
                previous_broker_epoch=config.previous_broker_epoch,
                rack=rack_of(config.broker_id, config.properties.broker_rack),
            )
        else:
            request = messages.BrokerHeartbeatRequest(
                broker_id=config.broker_id,
                broker_epoch=self.broker_epoch,
                current_metadata_offset=MetadataOffset(self.applied_end_offset - 1),
                want_fence=not self._is_ready,
                want_shut_down=self.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN,
                offline_log_dirs=tuple(self.offline_log_dirs),
            )
        # Two tries fit into a session, so that one lost answer does not fence the broker.
        timeout_ms = max(1, config.properties.broker_session_timeout_ms // 2)
        self._controllers.send(turn, request, timeout_ms=timeout_ms)

    def _enter(self, turn: Turn, state: BrokerState) -> None:
        turn.record(
            events.BrokerStateChanged(cause_id=turn.cause_id, old=self.state, new=state, broker_epoch=self.broker_epoch)
        )
        self.state = state
