"""Processes around a ZooKeeper server as a target: those of our own nodes, but for how the controller is asked."""

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
from laststand.chaos.zookeeper.administration import config_problem, described, placed_partitions, placed_topic
from laststand.chaos.zookeeper.harness_client import HarnessClient, harness_client
from laststand.chaos.zookeeper.metadata import ZooKeeperMetadata
from laststand.chaos.zookeeper.server_events import ServerEvents
from laststand.emulator.client.admin_connection import AdminConnection
from laststand.emulator.client.admin_error import AdminError
from laststand.emulator.cluster.link_messages import LinkMessages
from laststand.emulator.cluster.process_cluster import ProcessCluster
from laststand.emulator.core import admin_messages, messages
from laststand.emulator.core.controller.view import ClusterView
from laststand.emulator.core.eras import ZooKeeperSwitches, plain_switches
from laststand.emulator.core.errors import ErrorCode, InvariantError
from laststand.emulator.core.properties import node_properties
from laststand.emulator.core.types import BrokerId, CauseId, NodeId
from laststand.emulator.core.zookeeper.administration import (
    administrate,
    described_cluster,
    write_config,
    write_partitions,
    write_topic,
)
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
        events: reads what the server wrote.
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
        """Writes into ZooKeeper what administrators write there, and asks the elected controller for the rest.

        Raises:
            AdminError: nobody was elected in time, or did not answer.
            NoZooKeeperError: the server did not answer.
        """
        cluster = self.cluster
        rules = cluster.layout.switches
        if not isinstance(rules, ZooKeeperSwitches):
            raise InvariantError("a ZooKeeper server in a cluster with other rules")
        match request:
            case admin_messages.CreateTopicsRequest():
                return await self._create_topics(request, rules)
            case admin_messages.CreatePartitionsRequest():
                return await self._create_partitions(request, rules)
            case admin_messages.IncrementalAlterConfigsRequest():
                return await self._alter_configs(request, rules)
            case admin_messages.DeleteTopicsRequest():
                return await self.zookeeper.run(administrate(request, rules.zookeeper, rules.protocol))
            case (
                messages.DescribeTopicPartitionsRequest()
                | admin_messages.DescribeConfigsRequest()
                | admin_messages.ListPartitionReassignmentsRequest()
            ):
                await self.committed_end()
                return described(request, self._view(rules))
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
            case _:
                name = type(request).__name__.removesuffix("Request")
                reason = "no controller of a cluster with ZooKeeper has such a request"
                raise AdminError(api=name, error=ErrorCode.UNSUPPORTED_VERSION, reason=reason)

    async def _create_topics(
        self, request: admin_messages.CreateTopicsRequest, rules: ZooKeeperSwitches
    ) -> admin_messages.CreateTopicsResponse:
        results: list[admin_messages.TopicResult] = []
        for topic in request.topics:
            await self.committed_end()
            placed = placed_topic(topic, self._view(rules))
            if isinstance(placed, admin_messages.TopicResult):
                results.append(placed)
            else:
                results.append(await self.zookeeper.run(write_topic(placed, rules.zookeeper, rules.protocol)))
        return admin_messages.CreateTopicsResponse(topics=tuple(results))

    async def _create_partitions(
        self, request: admin_messages.CreatePartitionsRequest, rules: ZooKeeperSwitches
    ) -> admin_messages.CreatePartitionsResponse:
        results: list[admin_messages.TopicResult] = []
        for wanted in request.topics:
            await self.committed_end()
            placed = placed_partitions(wanted, self._view(rules))
            if isinstance(placed, admin_messages.TopicResult):
                results.append(placed)
            elif request.validate_only:
                results.append(admin_messages.TopicResult(name=wanted.name, error=ErrorCode.NONE))
            else:
                results.append(await self.zookeeper.run(write_partitions(placed, rules.zookeeper)))
        return admin_messages.CreatePartitionsResponse(topics=tuple(results))

    async def _alter_configs(
        self, request: admin_messages.IncrementalAlterConfigsRequest, rules: ZooKeeperSwitches
    ) -> admin_messages.IncrementalAlterConfigsResponse:
        results: list[admin_messages.ConfigResourceResult] = []
        for resource in request.resources:
            await self.committed_end()
            problem = config_problem(resource, self._view(rules))
            if problem is not None:
                results.append(problem)
            elif request.validate_only:
                name = resource.resource_name
                results.append(
                    admin_messages.ConfigResourceResult(
                        resource=resource.resource, resource_name=name, error=ErrorCode.NONE
                    )
                )
            else:
                results.append(await self.zookeeper.run(write_config(resource)))
        return admin_messages.IncrementalAlterConfigsResponse(resources=tuple(results))

    def _view(self, rules: ZooKeeperSwitches) -> ClusterView:
        layout = self.cluster.layout
        return ClusterView(
            image=self.image,
            properties=node_properties(dict(layout.properties)),
            switches=plain_switches(rules),
            node_id=layout.controller_id,
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
