"""Runs one client state machine: delivers inputs, keeps its clock, executes its effects.

In one turn the lines of the history are written first, before any request is sent.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from laststand.emulator.client.config import Wire
from laststand.emulator.client.history import History
from laststand.emulator.client.records import parse_fetched
from laststand.emulator.core import effects, inputs
from laststand.emulator.core.requester import node_name
from laststand.emulator.core.types import CLIENT_ID, CauseId, NodeId
from laststand.emulator.rpc.address_book import AddressBook
from laststand.emulator.rpc.certificates import HARNESS
from laststand.emulator.rpc.channel import Keepalive
from laststand.emulator.rpc.data_codec import Attachment
from laststand.emulator.rpc.outbound import Deliver, Outbound, Outcome
from laststand.emulator.rpc.run_token import RunToken

if TYPE_CHECKING:
    from laststand.emulator.kafka.outbound import KafkaOutbound

InputT = TypeVar("InputT", contravariant=True)
EffectT = TypeVar("EffectT", covariant=True)

_TIMER_CAUSE: Final = CauseId("timer")


def now_ms() -> int:
    """Returns the machine's monotonic clock."""
    return time.monotonic_ns() // 1_000_000


class StateMachine(Protocol[InputT, EffectT]):
    """The interface that producer and consumer share."""

    def step(self, incoming: InputT | inputs.TimerFired, *, now_ms: int) -> Sequence[EffectT | effects.SendRequest]:
        """Takes an input and returns the effects."""
        ...

    def next_deadline_ms(self) -> int | None:
        """Returns when ``TimerFired`` is due."""
        ...


class Links:
    """The means by which a shell reaches the cluster: addresses, keepalive, token, and a group that owns its tasks.

    Args:
        addresses: of the nodes.
        keepalive: settings after which a silent node is given up.
        token: of the cluster.
        tasks: owns the started tasks.
        dialler: the client that sends the requests; ``None`` for requests that no fault may affect.
        wire: the protocol by which nodes are called.
    """

    def __init__(
        self,
        *,
        addresses: dict[int, str],
        keepalive: Keepalive,
        token: RunToken,
        tasks: asyncio.TaskGroup,
        dialler: NodeId | None = CLIENT_ID,
        wire: Wire = Wire.GRPC,
        broker_numbers: Mapping[int, int] = {},
    ) -> None:
        self._addresses = AddressBook({NodeId(node): address for node, address in addresses.items()})
        self._dialler = dialler
        self._keepalive = keepalive
        self._token = token
        self._tasks = tasks
        self._wire = wire
        self._broker_numbers = broker_numbers

    def outbound(self, deliver: Deliver) -> "Outbound | KafkaOutbound":
        """Returns the sender of a client's requests; ``deliver`` is called with every outcome."""
        if self._wire is not Wire.GRPC:
            from laststand.emulator.kafka.connection import Login
            from laststand.emulator.kafka.outbound import KafkaOutbound

            name = HARNESS if self._dialler is None else node_name(self._dialler)
            return KafkaOutbound(
                addresses=self._addresses,
                keepalive=self._keepalive,
                tasks=self._tasks,
                parse_fetched=parse_fetched,
                deliver=deliver,
                login=Login(name, self._token.text) if self._wire is Wire.KAFKA_WITH_LOGIN else None,
                numbers=self._broker_numbers,
            )
        return Outbound(
            addresses=self._addresses,
            dialler=self._dialler,
            keepalive=self._keepalive,
            token=self._token,
            tasks=self._tasks,
            parse_fetched=parse_fetched,
            deliver=deliver,
        )


class Shell(Generic[InputT, EffectT]):
    """Driver of one state machine.

    Args:
        core: the state machine.
        links: connections to the cluster.
        history: flushed before anything is sent.
        to_input: converts an outcome and its bytes to the core's input.
        record: writes an effect that is no request into the history.
        attachments: bytes that belong to a request.
    """

    def __init__(
        self,
        *,
        core: StateMachine[InputT, EffectT],
        links: Links,
        history: History,
        to_input: Callable[[Outcome, tuple[bytes, ...]], InputT],
        record: Callable[[EffectT], None],
        attachments: Callable[[effects.SendRequest], Sequence[Attachment]],
    ) -> None:
        self._core = core
        self._history = history
        self._to_input = to_input
        self._record = record
        self._attachments = attachments
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms: int | None = None
        self._is_closed = False
        self._outbound = links.outbound(self._deliver)

    def step(self, incoming: InputT | inputs.TimerFired) -> None:
        """Passes an input to the core and executes its effects. Does nothing once the shell is closed."""
        if self._is_closed:
            return
        requests: list[effects.SendRequest] = []
        for effect in self._core.step(incoming, now_ms=now_ms()):
            if isinstance(effect, effects.SendRequest):
                requests.append(effect)
            else:
                self._record(effect)
        self._history.flush()
        for request in requests:
            self._outbound.send(
                destination=request.destination,
                correlation_id=request.correlation_id,
                request=request.request,
                timeout_ms=request.timeout_ms,
                cause_id=request.cause_id,
                attachments=self._attachments(request),
            )
        self._set_timer()

    async def close(self) -> None:
        """Gives up unanswered requests and closes the connections."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        await self._outbound.close()

    def _deliver(self, outcome: Outcome, attachments: tuple[bytes, ...]) -> None:
        if not self._is_closed:
            self.step(self._to_input(outcome, attachments))

    def _set_timer(self) -> None:
        deadline_ms = self._core.next_deadline_ms()
        if deadline_ms == self._timer_ms:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._timer_ms = deadline_ms
        if deadline_ms is not None:
            delay_s = max(0, deadline_ms - now_ms()) / 1000
            self._timer = asyncio.get_running_loop().call_later(delay_s, self._fire)

    def _fire(self) -> None:
        self._timer = None
        self._timer_ms = None
        self.step(inputs.TimerFired(cause_id=_TIMER_CAUSE))
