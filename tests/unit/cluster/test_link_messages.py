"""Orders about messages to a node, over the lives of its processes."""

from collections.abc import Callable

from laststand.emulator.cluster.link_messages import LinkMessages
from laststand.emulator.core import events
from laststand.emulator.core.types import NodeId, Way
from laststand.emulator.plan.channels import Link
from laststand.emulator.rpc.frame_proxy import FrameProxy
from laststand.emulator.rpc.interception import InterceptionOrder, Interceptor, Intervention, MessageKind

KIND = MessageKind(NodeId(0), "Fetch", Way.REQUEST)
NODE = NodeId(1)


def make_none(_link: Link[NodeId], _address: str, _interceptor: Callable[[], Interceptor]) -> FrameProxy:
    raise AssertionError("no link was named")


def order(intervention: Intervention, *, count: int | None = None) -> InterceptionOrder:
    return InterceptionOrder(intervention=intervention, kind=KIND, count=count)


def test_a_new_process_has_the_orders_that_last_and_no_others() -> None:
    told: list[events.MessageIntercepted] = []
    messages = LinkMessages((), make_proxy=make_none, record=told.append)
    assert not messages.covers(NODE)
    messages.starting(NODE, ())
    assert messages.covers(NODE)
    assert messages.obey(NODE, order(Intervention.LOSE_NEXT, count=1)).is_changed
    messages.starting(NODE, (order(Intervention.HOLD),))
    assert not messages.obey(NODE, order(Intervention.HOLD)).is_changed
    messages.starting(NODE, ())
    assert not messages.obey(NODE, order(Intervention.RELEASE)).is_changed
