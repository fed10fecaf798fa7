"""Faults of single messages at the node that serves an API: messages are held, lost, duplicated or delayed.

The harness sends orders to the node's own port (``INTERCEPTION_PATH``), bypassing all proxies. The sender of a message
is in the user agent of its connection, since requests do not name it. Held messages are lost with the process, as with
a broken connection; the next process continues to hold messages (``NodeConfig.interceptions``).

A request is held before the node sees it: its sender may give it up meanwhile, and it is still executed when it is
released. A response is held after the node has sent it. The metadata stream is the API ``Stream``.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from enum import Enum
from functools import partial
from typing import Final, NamedTuple, TypeAlias, assert_never

import msgspec

from laststand.emulator.core import events
from laststand.emulator.core.types import CauseId, MessageFate, NodeId, Way
from laststand.emulator.rpc.json_codec import JsonCodec

INTERCEPTION_SERVICE: Final = "laststand.Interception"
INTERCEPTION_METHOD: Final = "Intercept"

STREAM_API: Final = "Stream"
"""The metadata stream's name as an API."""

_USER_AGENT: Final = "user-agent"
_AGENT: Final = "laststand/"


class MessageKind(NamedTuple):
    """Messages of one API between two nodes, in one direction, as seen at the node that serves the API."""

    source: NodeId
    api: str
    way: Way


class Intervention(Enum):
    """The treatment of messages that an order asks for."""

    HOLD = "hold"
    RELEASE = "release"
    """Deliver the oldest that are held; without a count all, and leave those that come alone from now on."""

    RELEASE_NEWEST = "release_newest"
    LOSE_HELD = "lose_held"
    DUPLICATE_HELD = "duplicate_held"
    LOSE_NEXT = "lose_next"
    DUPLICATE_NEXT = "duplicate_next"
    DELAY = "delay"


class InterceptionOrder(msgspec.Struct, frozen=True, kw_only=True):
    """An order of the harness.

    Attributes:
        kind: of messages.
        count: number of messages, if it matters.
        delay_ms: of ``DELAY``.
    """

    intervention: Intervention
    kind: MessageKind
    count: int | None = None
    delay_ms: int = 0


class InterceptionReport(msgspec.Struct, frozen=True, kw_only=True):
    """The effect of an order.

    Attributes:
        is_changed: whether the order changed anything.
        messages: number of messages affected at once.
    """

    is_changed: bool
    messages: int = 0


Deliver: TypeAlias = Callable[[], None]


class _Rule:
    """The treatment of messages of one kind; ``held`` is in the order of arrival."""

    __slots__ = ("delay_ms", "held", "intervention", "left")

    def __init__(self, order: InterceptionOrder) -> None:
        self.intervention = order.intervention
        self.left = order.count or 0
        self.delay_ms = order.delay_ms
        self.held: deque[tuple[CauseId, Deliver, Deliver]] = deque()


class Interceptor:
    """Interferes with messages of one node.

    Args:
        node_id: the node.
        orders: in force from the start.
        record: takes an event for each message that was interfered with.

    Attributes:
        is_idle: whether every message passes.
    """

    def __init__(
        self,
        node_id: NodeId,
        orders: Iterable[InterceptionOrder] = (),
        *,
        record: Callable[[events.MessageIntercepted], None],
    ) -> None:
        self.is_idle = True
        self._node_id = node_id
        self._record = record
        self._rules: dict[MessageKind, _Rule] = {}
        for order in orders:
            self.obey(order)

    # --- Messages -------------------------------------------------------------------------------------------------

    def send(
        self,
        source: NodeId | None,
        api: str,
        way: Way,
        cause_id: CauseId,
        deliver: Deliver,
        drop: Deliver = lambda: None,
    ) -> None:
        """Delivers a message, or applies the ordered fault to it.

        Args:
            source: the dialling process, ``None`` for one whose messages always pass.
            api: of the message.
            way: of the message.
            cause_id: of the message.
            deliver: delivers it; called at once, later, twice or never.
            drop: called if it is lost.
        """
        kind = None if source is None else MessageKind(source, api, way)
        rule = None if kind is None else self._rules.get(kind)
        if kind is None or rule is None:
            deliver()
            return
        match rule.intervention:
            case Intervention.HOLD:
                self._note(kind, MessageFate.HELD, cause_id)
                rule.held.append((cause_id, deliver, drop))
            case Intervention.LOSE_NEXT:
                self._note(kind, MessageFate.LOST, cause_id)
                self._count_down(kind, rule)
                drop()
            case Intervention.DUPLICATE_NEXT:
                self._note(kind, MessageFate.DUPLICATED, cause_id)
                self._count_down(kind, rule)
                deliver()
                deliver()
            case Intervention.DELAY:
                self._note(kind, MessageFate.DELAYED, cause_id)
                asyncio.get_running_loop().call_later(rule.delay_ms / 1000, deliver)
            case _:
                raise AssertionError(f"{rule.intervention} is no rule")

    def _count_down(self, kind: MessageKind, rule: _Rule) -> None:
        rule.left -= 1
        if not rule.left:
            self._end(kind)

    def _note(self, kind: MessageKind, fate: MessageFate, cause_id: CauseId) -> None:
        event = events.MessageIntercepted(
            cause_id=cause_id, source=kind.source, target=self._node_id, api=kind.api, way=kind.way, fate=fate
        )
        self._record(event)

    # --- Orders ---------------------------------------------------------------------------------------------------

    def obey(self, order: InterceptionOrder) -> InterceptionReport:
        """Carries out an order."""
        match order.intervention:
            case Intervention.HOLD | Intervention.LOSE_NEXT | Intervention.DUPLICATE_NEXT | Intervention.DELAY:
                return self._arm(order.kind, order)
            case Intervention.RELEASE:
                is_there = order.kind in self._rules
                released = self._release(order.kind, order.count)
                return InterceptionReport(
                    is_changed=released > 0 or (is_there and order.count is None), messages=released
                )
            case Intervention.RELEASE_NEWEST | Intervention.LOSE_HELD | Intervention.DUPLICATE_HELD:
                return self._with_held(order.kind, order.intervention)
            case _:
                assert_never(order.intervention)

    def _arm(self, kind: MessageKind, order: InterceptionOrder) -> InterceptionReport:
        rule = self._rules.get(kind)
        if rule is not None and (rule.intervention, rule.left, rule.delay_ms) == (
            order.intervention,
            order.count or 0,
            order.delay_ms,
        ):
            return InterceptionReport(is_changed=False)
        released = self._release(kind, None)
        self._rules[kind] = _Rule(order)
        self.is_idle = False
        return InterceptionReport(is_changed=True, messages=released)

    def _end(self, kind: MessageKind) -> None:
        self._rules.pop(kind, None)
        self.is_idle = not self._rules

    def _release(self, kind: MessageKind, count: int | None) -> int:
        rule = self._rules.get(kind)
        if rule is None:
            return 0
        number = len(rule.held) if count is None else min(count, len(rule.held))
        if count is None:
            self._end(kind)
        for _ in range(number):
            cause_id, deliver, _ = rule.held.popleft()
            self._let_go(kind, cause_id, deliver)
        return number

    def _with_held(self, kind: MessageKind, intervention: Intervention) -> InterceptionReport:
        rule = self._rules.get(kind)
        if rule is None or not rule.held:
            return InterceptionReport(is_changed=False)
        if intervention is Intervention.RELEASE_NEWEST:
            cause_id, deliver, _ = rule.held.pop()
            self._let_go(kind, cause_id, deliver)
            return InterceptionReport(is_changed=True, messages=1)
        cause_id, deliver, drop = rule.held[0]
        if intervention is Intervention.LOSE_HELD:
            rule.held.popleft()
            self._note(kind, MessageFate.LOST, cause_id)
            drop()
        elif kind.way is Way.REQUEST and kind.api != STREAM_API:
            self._note(kind, MessageFate.DUPLICATED, cause_id)
            deliver()
        else:
            return InterceptionReport(is_changed=False)
        return InterceptionReport(is_changed=True, messages=1)

    def _let_go(self, kind: MessageKind, cause_id: CauseId, deliver: Deliver) -> None:
        self._note(kind, MessageFate.RELEASED, cause_id)
        deliver()

    async def passage(self, source: NodeId | None, api: str, way: Way, cause_id: CauseId) -> None:
        """Waits until a message may pass; without end, if it is lost."""
        passed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.send(source, api, way, cause_id, partial(_set, passed))
        await passed


def _set(passed: "asyncio.Future[None]") -> None:
    if not passed.done():
        passed.set_result(None)


# --- Who dialled --------------------------------------------------------------------------------------------------


def user_agent(dialler: NodeId) -> str:
    """Returns the name of a process on its connections."""
    return f"{_AGENT}{dialler}"


def dialler_of(metadata: Iterable[tuple[str, str | bytes]]) -> NodeId | None:
    """Returns the process that a call comes from, by its metadata; ``None`` if it did not name itself."""
    agent = next((str(value) for key, value in metadata if key == _USER_AGENT), "")
    name = agent.partition(" ")[0].removeprefix(_AGENT)
    return NodeId(int(name)) if agent.startswith(_AGENT) and name.isdecimal() else None


INTERCEPTION_ORDERS: Final = JsonCodec(InterceptionOrder)
INTERCEPTION_REPORTS: Final = JsonCodec(InterceptionReport)
