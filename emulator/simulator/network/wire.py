"""Requests in flight: from sender to receiver and back, subject to network faults.

Each request ends exactly once for its sender: answered, timed out, or disconnected. That says nothing about its
execution: a request may arrive after its sender gave up, and a response may be lost. A *cut* link drops both
directions, and the sender notices after a while, as with keepalives; so it does if the destination is *silent*: paused,
and about to execute what has arrived once it is resumed. A *losing* link delivers requests and drops responses; a
*reset* ends all requests of a connection at once, and those in flight to the server may still arrive.
"""

from collections.abc import Callable
from enum import Enum
from functools import cache, partial
from typing import Generic, Protocol

from laststand.emulator.core import effects, inputs, messages
from laststand.emulator.core.requester import Requester, node_principal
from laststand.emulator.core.types import Acks, CauseId, MessageFate, NodeId, RequestFailure, RequestId, Way
from laststand.emulator.plan.channels import Channel, Link
from laststand.emulator.simulator.network import session_messages
from laststand.emulator.simulator.network.network import KEEPALIVE_MS, LATENCY_MS, Network
from laststand.emulator.simulator.nodes.event_queue import EventQueue
from laststand.emulator.simulator.nodes.nodes import InputT, Node

_NETWORK_CAUSE = CauseId("network")


class Asker(Protocol):
    """The sender of a request, which waits for the answer."""

    @property
    def node_id(self) -> NodeId:
        """The node that asks."""
        ...

    def conclude(self, outcome: inputs.ResponseReceived | inputs.RequestFailed) -> None:
        """Delivers the outcome, if the process that sent the request still runs."""
        ...


class NodeAsker(Generic[InputT]):
    """One incarnation of a node as the sender of requests."""

    __slots__ = ("_incarnation", "_node", "_step", "node_id")

    def __init__(self, node: Node[InputT], step: Callable[[Node[InputT], InputT], None]) -> None:
        self.node_id = node.node_id
        self._node = node
        self._incarnation = node.incarnation
        self._step = step

    def conclude(self, outcome: inputs.ResponseReceived | inputs.RequestFailed) -> None:
        """Delivers the outcome to the node, unless a later process of the node runs."""
        if self._node.incarnation == self._incarnation and self._node.core is not None:
            self._step(self._node, self._node.to_input(outcome))


class _Asked:
    """An unanswered request; ``channel`` is the one that its answer will take."""

    __slots__ = ("asker", "channel", "effect", "sent_ms")

    def __init__(self, asker: Asker, effect: effects.SendRequest, channel: Channel[NodeId], *, sent_ms: int) -> None:
        self.asker = asker
        self.effect = effect
        self.channel = channel
        self.sent_ms = sent_ms


class RequestFate(Enum):
    """Outcome of a request that did not simply arrive."""

    LATE = "late"
    """It arrived later than without a fault, perhaps after its sender had given it up."""

    LOST = "lost"
    """Its sender gave it up."""


def _unobserved(sender: NodeId, target: NodeId, request: messages.Request, sent_ms: int, fate: RequestFate) -> None:
    """Ignores a request."""


class Parked:
    """A request that a node has received and not answered yet: sender, API, and since when."""

    __slots__ = ("api", "node_id", "since_ms")

    def __init__(self, node_id: NodeId, api: str, since_ms: int) -> None:
        self.node_id = node_id
        self.api = api
        self.since_ms = since_ms


class Wire:
    """All requests in flight.

    Args:
        queue: virtual time.
        network: the network and its faults.
        receive: delivers a request to a node; returns false if no process runs there.
        silence_ms: after which a request to a silent node fails.

    Attributes:
        answers: for requests that bypass all links (``None``: connection closed).
        parked: requests that nodes have received and not answered yet.
        on_end: called with sender, target, request and time of sending for each request that arrives late or is lost.
    """

    def __init__(
        self,
        queue: EventQueue,
        network: Network,
        receive: Callable[[NodeId, inputs.RequestReceived], bool],
        *,
        silence_ms: int,
    ) -> None:
        self.answers: dict[RequestId, messages.Response | None] = {}
        self.parked: dict[RequestId, Parked] = {}
        self.on_end: Callable[[NodeId, NodeId, messages.Request, int, RequestFate], None] = _unobserved
        self._queue = queue
        self._network = network
        self._receive = receive
        self._asked: dict[RequestId, _Asked] = {}
        self._channels: dict[
            tuple[NodeId, NodeId, type[messages.Request]], tuple[Channel[NodeId], Channel[NodeId]]
        ] = {}
        self._last_id = 0
        self._silence_ms = silence_ms
        self._silences: dict[NodeId, int] = {}
        self._last_silence = 0

    # --- Asking -----------------------------------------------------------------------------------------------------

    def ask(self, asker: Asker, effect: effects.SendRequest) -> None:
        """Sends a node's request; it fails after its timeout without an answer."""
        self._last_id += 1
        request_id = RequestId(self._last_id)
        channel, answers = self._channels_of(asker.node_id, effect.destination, effect.request)
        sent_ms = self._queue.now_ms
        self._asked[request_id] = _Asked(asker, effect, answers, sent_ms=sent_ms)
        received = inputs.RequestReceived(
            cause_id=effect.cause_id,
            request_id=request_id,
            request=effect.request,
            requester=requester_of(asker.node_id),
        )
        named = self._named(channel, effect.request)
        self.travel(named, partial(self._arrive, channel, received, sent_ms))
        self._queue.after(effect.timeout_ms, partial(self._fail, request_id, RequestFailure.TIMED_OUT))

    def _channels_of(
        self, source: NodeId, destination: NodeId, request: messages.Request
    ) -> tuple[Channel[NodeId], Channel[NodeId]]:
        """Returns the channels of a request and its response; created once, because every message needs one."""
        key = (source, destination, type(request))
        channels = self._channels.get(key)
        if channels is None:
            api = api_name(request)
            there, back = (Channel(source, destination, api, way) for way in (Way.REQUEST, Way.RESPONSE))
            channels = self._channels[key] = (there, back)
        return channels

    def _named(self, channel: Channel[NodeId], request: messages.Request) -> Channel[NodeId]:
        """Returns the channel that faults apply to: a faulted ZooKeeper operation in the request, if there is one."""
        network = self._network
        if network.held or network.interferences:
            for operation in session_messages.operations_of(request):
                named = channel._replace(api=operation)
                if named in network.held or named in network.interferences:
                    return named
        return channel

    def ask_past_links(self, node_id: NodeId, request: messages.Request, *, cause_id: CauseId) -> RequestId:
        """Asks from outside the network; the answer appears in ``answers`` (``None``: connection closed)."""
        self._last_id += 1
        request_id = RequestId(self._last_id)
        received = inputs.RequestReceived(cause_id=cause_id, request_id=request_id, request=request)

        def arrive() -> None:
            self._hand_over(node_id, api_name(request), received)

        self._queue.after(LATENCY_MS, arrive)
        return request_id

    def travel(self, channel: Channel[NodeId], delivery: Callable[[], None]) -> None:
        """Sends a message, unless its channel is held or a fault affects it."""
        network = self._network
        if network.held and channel in network.held:
            network.intercept(channel, MessageFate.HELD)
            network.held[channel].append(delivery)
            return
        arrival_ms = network.arrival_ms(channel, now_ms=self._queue.now_ms)
        if network.interferences and (interference := network.interferences.get(channel)) is not None:
            network.interfere(channel, interference)
            if interference.fate is MessageFate.LOST:
                return
            if interference.fate is MessageFate.DUPLICATED:
                self._queue.at(arrival_ms, delivery)
            arrival_ms += interference.delay_ms
        self._queue.at(arrival_ms, delivery)

    def _arrive(self, channel: Channel[NodeId], received: inputs.RequestReceived, sent_ms: int) -> None:
        if self._queue.now_ms > sent_ms + LATENCY_MS:
            self.on_end(channel.source, channel.target, received.request, sent_ms, RequestFate.LATE)
        if self._network.swallows_requests(Link(channel.source, channel.target)):
            self._fail_later(received.request_id, KEEPALIVE_MS)
        elif channel.source in self._network.expired or not self._hand_over(channel.target, channel.api, received):
            self._fail_later(received.request_id, LATENCY_MS)
        elif (silence := self._silences.get(channel.target)) is not None:
            self._fail_if_silent(channel.target, silence, (received.request_id,))

    def _hand_over(self, node_id: NodeId, api: str, received: inputs.RequestReceived) -> bool:
        request, request_id = received.request, received.request_id
        if not (isinstance(request, messages.ProduceRequest) and request.acks == Acks.NONE):
            self.parked[request_id] = Parked(node_id, api, self._queue.now_ms)
        is_taken = self._receive(node_id, received)
        if not is_taken:
            self.parked.pop(request_id, None)
        return is_taken

    # --- Answering --------------------------------------------------------------------------------------------------

    def respond(self, effect: effects.SendResponse) -> None:
        """Sends an answer back."""
        self.parked.pop(effect.request_id, None)
        asked = self._asked.get(effect.request_id)
        if asked is None:
            request_id = effect.request_id
            self._queue.after(LATENCY_MS, lambda: self.answers.__setitem__(request_id, effect.response))
            return
        channel = asked.channel
        self.travel(self._named(channel, asked.effect.request), partial(self._return, channel, effect))

    def _return(self, channel: Channel[NodeId], effect: effects.SendResponse) -> None:
        link = (channel.source, channel.target)
        if link in self._network.cuts or link in self._network.losing:
            self._fail_later(effect.request_id, KEEPALIVE_MS)
            return
        asked = self._asked.pop(effect.request_id, None)
        if asked is not None:
            asked.asker.conclude(
                inputs.ResponseReceived(
                    cause_id=effect.cause_id, correlation_id=asked.effect.correlation_id, response=effect.response
                )
            )

    def close(self, request_id: RequestId) -> None:
        """The server closed the connection instead of answering."""
        self.parked.pop(request_id, None)
        if request_id in self._asked:
            self._fail_later(request_id, LATENCY_MS)
        else:
            self.answers[request_id] = None

    # --- Failing ----------------------------------------------------------------------------------------------------

    def _fail_later(self, request_id: RequestId, delay_ms: int) -> None:
        self._queue.after(delay_ms, partial(self._fail, request_id, RequestFailure.DISCONNECTED))

    def _fail(self, request_id: RequestId, failure: RequestFailure) -> None:
        asked = self._asked.pop(request_id, None)
        if asked is not None:
            effect = asked.effect
            self.on_end(asked.asker.node_id, effect.destination, effect.request, asked.sent_ms, RequestFate.LOST)
            asked.asker.conclude(
                inputs.RequestFailed(
                    cause_id=_NETWORK_CAUSE, correlation_id=asked.effect.correlation_id, failure=failure
                )
            )

    def fall_silent(self, node_id: NodeId) -> None:
        """Notes that a process is paused: requests to it, waiting and later ones, fail after a while.

        Responses in flight still arrive.
        """
        self._last_silence += 1
        self._silences[node_id] = self._last_silence
        waiting = tuple(request_id for request_id, parked in self.parked.items() if parked.node_id == node_id)
        self._fail_if_silent(node_id, self._last_silence, waiting)

    def end_silence(self, node_id: NodeId) -> None:
        """A process is resumed, or has ended."""
        self._silences.pop(node_id, None)

    def _fail_if_silent(self, node_id: NodeId, silence: int, request_ids: tuple[RequestId, ...]) -> None:
        """Fails the requests to a node if it is still silent when senders notice."""

        def notice() -> None:
            if self._silences.get(node_id) == silence:
                for request_id in request_ids:
                    self._fail(request_id, RequestFailure.DISCONNECTED)

        self._queue.after(self._silence_ms, notice)

    def reset(self, source: NodeId, destination: NodeId) -> int:
        """Ends all requests of a connection: their senders are notified, responses are lost. Returns their number."""
        request_ids = [
            request_id
            for request_id, asked in self._asked.items()
            if asked.asker.node_id == source and asked.effect.destination == destination
        ]
        for request_id in request_ids:
            self._fail_later(request_id, LATENCY_MS)
        return len(request_ids)

    def lose_process(self, node_id: NodeId) -> None:
        """Notes that a process ended: requests to it fail, and its own requests are dropped."""
        self.end_silence(node_id)
        for request_id in [request_id for request_id, parked in self.parked.items() if parked.node_id == node_id]:
            del self.parked[request_id]
        for request_id, asked in list(self._asked.items()):
            if asked.asker.node_id == node_id:
                del self._asked[request_id]
            elif asked.effect.destination == node_id:
                self._fail_later(request_id, LATENCY_MS)


@cache
def requester_of(node_id: NodeId) -> Requester:
    """Returns a node as the sender of requests; in virtual time nodes need not authenticate."""
    return Requester(node_principal(node_id))


def api_name(request: messages.Request) -> str:
    """Returns the API's name: ``Fetch``, ``AlterPartition`` and so on."""
    return _api_name(type(request))


@cache
def _api_name(request_type: type[messages.Request]) -> str:
    return request_type.__name__.removesuffix("Request")
