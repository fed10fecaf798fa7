"""Processes around a ZooKeeper server as a target: like Laststand's own nodes, except for requests to controllers."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from laststand.chaos.play.waiting import ChangeSignal
from laststand.chaos.process.annotations import annotated
from laststand.chaos.process.client_link import ClientLink
from laststand.chaos.process.faults import execute
from laststand.chaos.process.harness_log import HarnessLog
from laststand.chaos.process.proxied_messages import ProxiedMessageFaults
from laststand.chaos.process.target import ProcessTarget
from laststand.chaos.zookeeper import depose_controller as _depose_controller  # noqa: F401 - enters its executor
from laststand.chaos.zookeeper import expire_session as _expire_session  # noqa: F401 - enters its executor
from laststand.chaos.zookeeper.harness_client import HarnessClient, harness_client
from laststand.chaos.zookeeper.metadata import ZooKeeperMetadata
from laststand.chaos.zookeeper.server_events import ServerEvents
from laststand.emulator.client.admin_connection import AdminConnection
from laststand.emulator.client.admin_error import AdminError
from laststand.emulator.cluster.link_messages import LinkMessages
from laststand.emulator.cluster.process_cluster import ProcessCluster
from laststand.emulator.core import admin_messages, messages
from laststand.emulator.core.describe import describe_topic_partitions
from laststand.emulator.core.eras import ZooKeeperSwitches, plain_switches
from laststand.emulator.core.errors import ErrorCode, InvariantError
from laststand.emulator.core.properties import node_properties
from laststand.emulator.core.types import BrokerId, CauseId, NodeId
from laststand.emulator.core.zookeeper.admin_manager import AdminRequest, AdminSettings, administer
from laststand.emulator.core.zookeeper.administration import described_cluster
from laststand.emulator.core.zookeeper.nodes import paths
from laststand.emulator.core.zookeeper.nodes.small_nodes import decode_controller
from laststand.emulator.rpc.channel import keepalive_for
from laststand.emulator.rpc.orders import is_order, order_given

_CAUSE: Final = CauseId("harness")
_ELECTED_WITHIN_S: Final = 30.0
_LOOK_S: Final = 0.05


@dataclass(kw_only=True, eq=False)
class ZooKeeperTarget(ProcessTarget):
    """The processes of a cluster with ZooKeeper, and of its clients.

    Attributes:
        events: reads the server's writes.
        zookeeper: the harness's session.
    """

    events: ServerEvents
    zookeeper: HarnessClient

    @property
    def elected_controller(self) -> BrokerId | None:
        """The broker that ``/controller`` names."""
        data = self.events.log.data(paths.CONTROLLER)
        return None if data is None else decode_controller(data)

    async def ask_controller(self, request: messages.Request) -> messages.Response:
        """Executes requests that brokers execute instead of the controller; sends the rest to the elected controller.

        Raises:
            AdminError: no controller was elected in time, or it did not answer.
            NoZooKeeperError: the server did not answer.
        """
        cluster = self.cluster
        rules = cluster.layout.switches
        if not isinstance(rules, ZooKeeperSwitches):
            raise InvariantError("a ZooKeeper server in a cluster with other rules")
        match request:
            case messages.DescribeTopicPartitionsRequest():
                await self.committed_end()
                limit = self._settings(rules).properties.max_request_partition_size_limit
                return describe_topic_partitions(self.image, request, partition_limit=limit)
            case admin_messages.DescribeClusterRequest():
                await self.committed_end()
                return described_cluster(
                    self.image,
                    cluster_id=cluster.cluster_id,
                    controller=self.elected_controller,
                    server=cluster.layout.controller_id,
                    last_zxid=self.events.log.last_zxid,
                )
            case admin_messages.ElectLeadersRequest() | admin_messages.AlterPartitionReassignmentsRequest():
                return await self._ask_elected(request)
            case _ if isinstance(request, AdminRequest):
                return await self.zookeeper.run(administer(request, self._settings(rules)))
            case _:
                name = type(request).__name__.removesuffix("Request")
                reason = "no controller of a cluster with ZooKeeper has such a request"
                raise AdminError(api=name, error=ErrorCode.UNSUPPORTED_VERSION, reason=reason)

    def _settings(self, rules: ZooKeeperSwitches) -> AdminSettings:
        layout = self.cluster.layout
        return AdminSettings(
            node_id=layout.controller_id,
            properties=node_properties(dict(layout.properties)),
            switches=plain_switches(rules),
            rules=rules.zookeeper,
            ibp=rules.protocol,
        )

    async def _ask_elected(self, request: messages.Request) -> messages.Response:
        cluster = self.cluster
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _ELECTED_WITHIN_S
        while (controller := self.elected_controller) is None:
            if loop.time() > deadline:
                name = type(request).__name__.removesuffix("Request")
                raise AdminError(api=name, error=ErrorCode.NOT_CONTROLLER, reason="nobody is elected")
            await asyncio.sleep(_LOOK_S)
        keepalive = keepalive_for(session_timeout_ms=self.session_timeout_ms)
        addresses: dict[NodeId, str] = {controller: cluster.direct_addresses()[controller]}
        if is_order(request):
            self.note(order_given(request, to=controller, cause_id=self.cause_id))
        async with AdminConnection(addresses, keepalive=keepalive, token=cluster.token, cause_id=_CAUSE) as connection:
            return await connection.ask(controller, request)


@asynccontextmanager
async def open_zookeeper_target(
    cluster: ProcessCluster,
    *,
    events: ServerEvents,
    metadata: ZooKeeperMetadata,
    messages: LinkMessages,
    client: ClientLink,
    log: HarnessLog,
    changes: ChangeSignal,
    session_timeout_ms: int,
) -> AsyncIterator[ZooKeeperTarget]:
    """Follows the transaction log of a started cluster, and yields the target that sees it."""
    address = cluster.direct_addresses()[cluster.layout.controller_id]
    async with (
        annotated() as annotations,
        asyncio.TaskGroup() as tasks,
        harness_client(address, timeout_ms=session_timeout_ms) as zookeeper,
    ):
        following = tasks.create_task(metadata.run())
        yield ZooKeeperTarget(
            cluster=cluster,
            metadata=metadata,
            log=log,
            changes=changes,
            session_timeout_ms=session_timeout_ms,
            messages=ProxiedMessageFaults(cluster, messages=messages, note=log.note),
            client=client,
            annotations=annotations,
            execute=execute,
            events=events,
            zookeeper=zookeeper,
        )
        following.cancel()
