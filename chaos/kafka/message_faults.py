"""Faults of single messages on Kafka: orders go to the proxies of the harness, not to nodes."""

from chaos.process.message_faults import MessageFaults
from emulator.cluster.kafka_messages import KafkaMessages
from emulator.cluster.process_cluster import ProcessCluster
from emulator.core.types import NodeId
from emulator.rpc.interception import InterceptionOrder, InterceptionReport


class KafkaMessageFaults(MessageFaults):
    """``MessageFaults`` on Kafka's links.

    Args:
        cluster: of the nodes.
        messages: its proxies.
    """

    def __init__(self, cluster: ProcessCluster, *, messages: KafkaMessages) -> None:
        super().__init__(cluster)
        self._messages = messages

    async def send(self, node_id: NodeId, order: InterceptionOrder) -> InterceptionReport | None:
        """Carries out an order about a node's messages; ``None`` while it is down."""
        return self._messages.obey(node_id, order) if self._cluster.is_running(node_id) else None
