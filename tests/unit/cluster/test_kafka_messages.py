"""What is done to messages to a node, over the lives of its processes."""

from emulator.cluster.kafka_messages import KafkaMessages
from emulator.core.events import MessageIntercepted
from emulator.core.types import NodeId, Way
from emulator.plan.channels import Link
from emulator.rpc.interception import InterceptionOrder, Intervention, MessageKind

KIND = MessageKind(NodeId(0), "Fetch", Way.REQUEST)
NODE = NodeId(1)


def order(intervention: Intervention, *, count: int | None = None) -> InterceptionOrder:
    return InterceptionOrder(intervention=intervention, kind=KIND, count=count)


def test_a_new_process_has_the_orders_that_last_and_no_others() -> None:
    told: list[MessageIntercepted] = []
    messages = KafkaMessages((Link(NodeId(0), NODE),), controller_id=NodeId(100), record=told.append)
    messages.starting(NODE, ())
    assert messages.obey(NODE, order(Intervention.LOSE_NEXT, count=1)).is_changed
    messages.starting(NODE, (order(Intervention.HOLD),))
    assert not messages.obey(NODE, order(Intervention.HOLD)).is_changed
    messages.starting(NODE, ())
    assert not messages.obey(NODE, order(Intervention.RELEASE)).is_changed
