"""Plays a run on Apache Kafka: like on Laststand's own processes, with JVMs instead."""

import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Final

from laststand.chaos.kafka.metadata import KafkaMetadata
from laststand.chaos.kafka.program import rules_of_release
from laststand.chaos.kafka.target import open_kafka_target
from laststand.chaos.kafka.witness import NodeWitness
from laststand.chaos.play.run_order import RunOrder
from laststand.chaos.process.driver import ProcessDriver
from laststand.chaos.process.proxied_messages import proxied_links
from laststand.chaos.process.target import ProcessTarget
from laststand.chaos.scenario.scenario import Scenario
from laststand.emulator.client.config import Wire
from laststand.emulator.cluster.child import ProcessEnd
from laststand.emulator.cluster.kafka_cluster import KafkaCluster
from laststand.emulator.cluster.link_messages import LinkMessages
from laststand.emulator.cluster.process_cluster import ProcessCluster
from laststand.emulator.cluster.sync_shim import find_sync_shim
from laststand.emulator.core.errors import InvariantError
from laststand.emulator.core.switches import Switches
from laststand.emulator.core.topic_names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from laststand.emulator.core.types import NodeId
from laststand.emulator.kafka.message_proxy import MessageProxy
from laststand.emulator.plan.channels import Link
from laststand.emulator.rpc.interception import Interceptor

_PARTITION_COUNTS: Final = {
    TRANSACTIONS_TOPIC: "transaction.state.log.num.partitions",
    OFFSETS_TOPIC: "offsets.topic.num.partitions",
}


class KafkaDriver(ProcessDriver):
    """``Driver`` of Apache Kafka's processes; arguments as in ``ProcessDriver``."""

    def __init__(self, order: RunOrder, *, logger: logging.Logger, on_problem: Callable[[str], None]) -> None:
        self._witness = NodeWitness(order.layout)
        self._messages = LinkMessages(
            proxied_links(order.scenario), make_proxy=self._proxy, record=self._witness.intercepted
        )
        super().__init__(order, logger=logger, on_problem=on_problem)
        self.wire = Wire.KAFKA_WITH_LOGIN if order.layout.has_authorizer else Wire.KAFKA
        self._metadata = KafkaMetadata(
            order.layout,
            witness=self._witness,
            has_ledgers=order.scenario.has_power_losses,
            on_change=self._changes.change,
        )

    def _make_cluster(self) -> ProcessCluster:
        if self._order.kafka is None:
            raise InvariantError("a run on Kafka without Kafka")
        return KafkaCluster(
            self._order.layout,
            kafka=self._order.kafka,
            rules_of=rules_of_release,
            messages=self._messages,
            properties=_coordinator_properties(self._order.scenario),
            sync_shim=find_sync_shim() if self._order.scenario.has_power_losses else None,
            on_start=self._note_start,
            on_stop=self._witness.stopping,
            on_end=self._note_end,
            on_unexpected_end=self._notice_crash,
        )

    def _open_target(self) -> AbstractAsyncContextManager[ProcessTarget]:
        return open_kafka_target(
            self._cluster,
            metadata=self._metadata,
            messages=self._messages,
            client=self._client,
            log=self._log,
            changes=self._changes,
            session_timeout_ms=self._session_timeout_ms,
        )

    async def close(self, *, problem: str | None) -> None:
        """Ends the nodes' event files, then the harness's."""
        self._witness.close()
        await super().close(problem=problem)

    def _note_start(self, node_id: NodeId, incarnation: int, own_rules: Switches | None) -> None:
        self._log.started(node_id, incarnation, own_rules)
        self._witness.started(node_id, incarnation, own_rules)

    def _note_end(self, node_id: NodeId, incarnation: int, end: ProcessEnd) -> None:
        self._metadata.read()
        self._witness.ended(node_id, incarnation, end.cause)

    def _proxy(self, link: Link[NodeId], target_address: str, interceptor: Callable[[], Interceptor]) -> MessageProxy:
        return MessageProxy(
            source=link.source,
            target=link.target,
            target_address=target_address,
            is_to_controller=link.target in self._order.layout.controller_ids,
            is_from_controller=link.source in self._order.layout.controller_ids,
            interceptor=interceptor,
        )


def _coordinator_properties(scenario: Scenario) -> dict[str, str]:
    """Returns the properties that give brokers the numbers of partitions of the scenario's coordinator topics.

    Kafka takes the number when it starts, before there is a topic.
    """
    counts = {topic.name: len(topic.replicas) for topic in scenario.topics}
    return {name: str(counts[topic]) for topic, name in _PARTITION_COUNTS.items() if topic in counts}
