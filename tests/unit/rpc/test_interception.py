"""Effects of each order on messages; nothing else is touched."""

from collections.abc import Callable

import pytest

from laststand.emulator.core import events
from laststand.emulator.core.types import CauseId, MessageFate, NodeId, Way
from laststand.emulator.rpc.interception import (
    INTERCEPTION_ORDERS,
    InterceptionOrder,
    InterceptionReport,
    Interceptor,
    Intervention,
    MessageKind,
    dialler_of,
    user_agent,
)

ZERO, ONE = NodeId(0), NodeId(1)
REQUESTS = MessageKind(ONE, "Fetch", Way.REQUEST)
RESPONSES = MessageKind(ONE, "Fetch", Way.RESPONSE)


class Traffic:
    """An interceptor, and what arrived and was recorded."""

    def __init__(self, *orders: InterceptionOrder) -> None:
        self.arrived: list[int] = []
        self.touched: list[events.MessageIntercepted] = []
        self.interceptor = Interceptor(ZERO, orders, record=self.touched.append)
        self._sent = 0

    def send(self, kind: MessageKind = REQUESTS, *, source: NodeId | None = ONE) -> None:
        self._sent += 1
        self.interceptor.send(source, kind.api, kind.way, CauseId("test"), self._arrival(self._sent))

    def _arrival(self, number: int) -> Callable[[], None]:
        return lambda: self.arrived.append(number)

    def obey(
        self, intervention: Intervention, kind: MessageKind = REQUESTS, count: int | None = None
    ) -> tuple[bool, int]:
        report = self.interceptor.obey(InterceptionOrder(intervention=intervention, kind=kind, count=count))
        return report.is_changed, report.messages

    @property
    def fates(self) -> list[MessageFate]:
        return [each.fate for each in self.touched]


def test_without_an_order_everything_passes() -> None:
    traffic = Traffic()
    traffic.send()
    assert (traffic.arrived, traffic.touched, traffic.interceptor.is_idle) == ([1], [], True)


def test_an_order_is_about_one_sender_one_api_and_one_way() -> None:
    traffic = Traffic(InterceptionOrder(intervention=Intervention.HOLD, kind=REQUESTS))
    traffic.send(RESPONSES)
    traffic.send(MessageKind(ONE, "Metadata", Way.REQUEST))
    traffic.send(source=NodeId(2))
    traffic.send(source=None)
    assert traffic.arrived == [1, 2, 3, 4]
    traffic.send()
    assert traffic.arrived == [1, 2, 3, 4]


def test_held_messages_are_released_in_order_by_count_and_newest_first() -> None:
    traffic = Traffic()
    assert traffic.obey(Intervention.HOLD) == (True, 0)
    assert traffic.obey(Intervention.HOLD) == (False, 0)
    assert traffic.obey(Intervention.RELEASE_NEWEST) == (False, 0)
    for _ in range(4):
        traffic.send()
    assert traffic.obey(Intervention.RELEASE, count=1) == (True, 1)
    assert traffic.obey(Intervention.RELEASE_NEWEST) == (True, 1)
    traffic.send()
    assert traffic.obey(Intervention.RELEASE) == (True, 3)
    traffic.send()
    assert traffic.arrived == [1, 4, 2, 3, 5, 6]
    assert traffic.obey(Intervention.RELEASE) == (False, 0)
    assert traffic.fates.count(MessageFate.HELD) == traffic.fates.count(MessageFate.RELEASED) == 5
    assert traffic.interceptor.is_idle


def test_of_what_is_held_the_oldest_is_lost_or_duplicated() -> None:
    traffic = Traffic()
    traffic.obey(Intervention.HOLD)
    assert traffic.obey(Intervention.LOSE_HELD) == (False, 0)
    for _ in range(3):
        traffic.send()
    assert traffic.obey(Intervention.LOSE_HELD) == (True, 1)
    assert traffic.obey(Intervention.DUPLICATE_HELD) == (True, 1)
    assert traffic.obey(Intervention.RELEASE) == (True, 2)
    assert traffic.arrived == [2, 2, 3]


def test_the_sender_of_a_lost_message_is_notified() -> None:
    traffic, dropped = Traffic(), list[str]()

    def send(name: str) -> None:
        traffic.interceptor.send(ONE, "Fetch", Way.REQUEST, CauseId("test"), lambda: None, lambda: dropped.append(name))

    traffic.obey(Intervention.LOSE_NEXT, count=1)
    send("next")
    assert dropped == ["next"]
    send("not lost")
    traffic.obey(Intervention.HOLD)
    send("held")
    send("released")
    assert dropped == ["next"]
    traffic.obey(Intervention.LOSE_HELD)
    traffic.obey(Intervention.RELEASE)
    assert dropped == ["next", "held"]


def test_responses_are_not_duplicated() -> None:
    traffic = Traffic()
    traffic.obey(Intervention.HOLD, RESPONSES)
    traffic.send(RESPONSES)
    assert traffic.obey(Intervention.DUPLICATE_HELD, RESPONSES) == (False, 0)


@pytest.mark.parametrize(
    ("intervention", "arrived"), [(Intervention.LOSE_NEXT, [3]), (Intervention.DUPLICATE_NEXT, [1, 1, 2, 2, 3])]
)
def test_only_as_many_as_counted_are_lost_or_duplicated(intervention: Intervention, arrived: list[int]) -> None:
    traffic = Traffic()
    assert traffic.obey(intervention, count=2) == (True, 0)
    assert traffic.obey(intervention, count=2) == (False, 0)
    for _ in range(3):
        traffic.send()
    assert traffic.arrived == arrived
    assert len(traffic.touched) == 2
    assert traffic.interceptor.is_idle


def test_another_order_lets_go_what_was_held() -> None:
    traffic = Traffic()
    traffic.obey(Intervention.HOLD)
    traffic.send()
    assert traffic.obey(Intervention.LOSE_NEXT, count=1) == (True, 1)
    assert traffic.arrived == [1]


def test_a_process_is_known_by_its_user_agent() -> None:
    assert dialler_of([("user-agent", f"{user_agent(NodeId(100))} grpc-python-asyncio/1")]) == 100
    assert dialler_of([("user-agent", "grpc-python-asyncio/1")]) is None
    assert dialler_of([("user-agent", "laststand/x")]) is None
    assert dialler_of([]) is None


def test_orders_travel_as_bytes() -> None:
    order = InterceptionOrder(intervention=Intervention.DELAY, kind=RESPONSES, delay_ms=5)
    assert INTERCEPTION_ORDERS.decode(INTERCEPTION_ORDERS.encode(order)) == order
    assert InterceptionReport(is_changed=True) != InterceptionReport(is_changed=False)
