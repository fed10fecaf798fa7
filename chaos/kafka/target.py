"""Kafka's processes as a target: like Laststand's own nodes, except for how requests are sent."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final

from laststand.chaos.kafka.metadata import KafkaMetadata
from laststand.chaos.play.waiting import ChangeSignal
from laststand.chaos.process.annotations import annotated
from laststand.chaos.process.client_link import ClientLink
from laststand.chaos.process.faults import execute
from laststand.chaos.process.harness_log import HarnessLog
from laststand.chaos.process.proxied_messages import ProxiedMessageFaults
from laststand.chaos.process.target import ProcessTarget
from laststand.emulator.client.active_controller import ActiveController
from laststand.emulator.client.admin_error import AdminError
from laststand.emulator.cluster.link_messages import LinkMessages
from laststand.emulator.cluster.process_cluster import ProcessCluster
from laststand.emulator.core import admin_messages, messages
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import MetadataOffset, NodeId
from laststand.emulator.kafka.admin_calls import QUORUM_RESPONSE, ask_admin, fetched_ends, quorum_request
from laststand.emulator.kafka.connection import Login, connected
from laststand.emulator.rpc.certificates import HARNESS

_ANSWERS_WITHIN_S: Final = 30.0
"""A controller that has just started answers later than it listens."""

_NEXT_AFTER_S: Final = 2.0
"""One of several controllers that does not report for so long that it leads is passed over. The leader has as long as a
single one: a request that is given up and sent again may be carried out twice."""

_ASK_AGAIN_S: Final = 0.2


class KafkaTarget(ProcessTarget):
    """Kafka's processes and their clients; each method does what ``Target`` says."""

    async def ask_controller(self, request: messages.Request) -> messages.Response:
        """Sends a request to the controller's own port (KIP-919), repeatedly while nothing listens; to the active one.

        Raises:
            AdminError: the controller did not answer in time.
        """
        layout = self.cluster.layout
        return await ActiveController(self._ask_node, layout.controller_ids).ask(layout.controller_id, request)

    async def _ask_node(self, node_id: NodeId, request: messages.Request) -> messages.Response:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + (_NEXT_AFTER_S if self._has_others(node_id) else _ANSWERS_WITHIN_S)
        while True:
            try:
                async with asyncio.timeout_at(deadline) as limit:
                    return await self._ask(node_id, request, limit)
            except OSError as error:
                if loop.time() >= deadline:
                    name = type(request).__name__.removesuffix("Request")
                    raise AdminError(api=name, error=ErrorCode.NETWORK_EXCEPTION, reason=str(error)) from error
            await asyncio.sleep(_ASK_AGAIN_S)

    async def _ask(self, node_id: NodeId, request: messages.Request, limit: asyncio.Timeout) -> messages.Response:
        address = self.cluster.direct_addresses()[node_id]
        login = Login(HARNESS, self.cluster.token.text) if self.cluster.layout.has_authorizer else None
        async with connected(address, login) as connection:
            is_description = isinstance(request, admin_messages.DescribeClusterRequest)
            if not is_description and not self._has_others(node_id):
                return await ask_admin(connection, request)
            ends = fetched_ends(await connection.ask(quorum_request(), QUORUM_RESPONSE))
            if not ends and self._has_others(node_id):
                raise AdminError(
                    api="DescribeQuorum", error=ErrorCode.NOT_CONTROLLER, reason=f"controller {node_id} does not lead"
                )
            if is_description:
                return self._described(ends, node_id)
            limit.reschedule(asyncio.get_running_loop().time() + _ANSWERS_WITHIN_S)
            return await ask_admin(connection, request)

    def _has_others(self, node_id: NodeId) -> bool:
        """Returns whether a node is one of several controllers."""
        several = self.cluster.layout.controller_ids
        return len(several) > 1 and node_id in several

    def _described(
        self, ends: Mapping[NodeId, MetadataOffset], controller_id: NodeId
    ) -> admin_messages.DescribeClusterResponse:
        """Returns the cluster by its metadata log, with the end of each broker's copy by the active controller."""
        cluster, image = self.cluster, self.image
        brokers = tuple(
            admin_messages.DescribedBroker(
                broker_id=broker_id,
                broker_epoch=registration.broker_epoch,
                incarnation_id=registration.incarnation_id,
                is_fenced=registration.fenced,
                in_controlled_shutdown=registration.in_controlled_shutdown,
                applied_offset=MetadataOffset(ends.get(broker_id, MetadataOffset(0)) - 1),
            )
            for broker_id, registration in sorted(image.brokers.items())
        )
        return admin_messages.DescribeClusterResponse(
            error=ErrorCode.NONE,
            cluster_id=cluster.cluster_id,
            controller_id=controller_id,
            metadata_end_offset=image.next_offset,
            brokers=brokers,
        )


@asynccontextmanager
async def open_kafka_target(
    cluster: ProcessCluster,
    *,
    metadata: KafkaMetadata,
    messages: LinkMessages,
    client: ClientLink,
    log: HarnessLog,
    changes: ChangeSignal,
    session_timeout_ms: int,
) -> AsyncIterator[KafkaTarget]:
    """Follows the metadata log of a started cluster, and yields the target that sees it."""
    async with annotated() as annotations, asyncio.TaskGroup() as tasks:
        following = tasks.create_task(metadata.run())
        yield KafkaTarget(
            cluster=cluster,
            metadata=metadata,
            log=log,
            changes=changes,
            session_timeout_ms=session_timeout_ms,
            messages=ProxiedMessageFaults(cluster, messages=messages, note=log.note),
            client=client,
            annotations=annotations,
            execute=execute,
        )
        following.cancel()
