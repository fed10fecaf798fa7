"""Another party's cluster as a target of steps."""

import asyncio
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Final

from laststand.chaos.external.hooked import BREAKS, perform_by_hook
from laststand.chaos.external.state import ExternalState
from laststand.chaos.play.barriers import Observation
from laststand.chaos.play.ending import repairs
from laststand.chaos.play.waiting import ChangeSignal, StepError
from laststand.chaos.process.client_link import ClientLink
from laststand.chaos.process.harness_log import HarnessLog
from laststand.emulator.client.admin_error import AdminError
from laststand.emulator.client.control import ClientCounts
from laststand.emulator.cluster.external_cluster import ExternalCluster
from laststand.emulator.cluster.hooks import HookError, Hooks
from laststand.emulator.core import admin_messages, events, messages
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.types import BrokerId, CauseId, MetadataOffset, NodeId, Offset, TopicPartition
from laststand.emulator.kafka.admin_calls import ask_admin
from laststand.emulator.kafka.connection import KafkaConnection, connected
from laststand.emulator.plan import actions
from laststand.emulator.plan.channels import Channel, Link
from laststand.emulator.plan.external_refusals import hook_name
from laststand.emulator.plan.faults import fault_events
from laststand.emulator.plan.nodes import CONTROLLER

_NO_OFFSET: Final = MetadataOffset(0)
"""Clients do not see the metadata log."""

_ANSWERS_WITHIN_S: Final = 30.0
_ASK_AGAIN_S: Final = 0.5
_PROBE_S: Final = 2.0


class ExternalTarget:
    """The cluster, its brokers' descriptions, and the harness's log; see ``Target`` for the methods.

    Args:
        cluster: the cluster as it was found.
        hooks: the commands that break and mend it.
        state: the brokers' descriptions.
        client: the client process.
        log: of the harness.
        changes: fires when anything may have changed.

    Attributes:
        made_topics: topics that this run has made, and not deleted since.
    """

    def __init__(
        self,
        *,
        cluster: ExternalCluster,
        hooks: Hooks,
        state: ExternalState,
        client: ClientLink,
        log: HarnessLog,
        changes: ChangeSignal,
    ) -> None:
        self.made_topics: set[str] = set()
        self._cluster = cluster
        self._hooks = hooks
        self._state = state
        self._client = client
        self._log = log
        self._changes = changes
        self._down: set[NodeId] = set()
        self._paused: set[NodeId] = set()
        self._disconnected: set[NodeId] = set()
        self._cut: set[Link[NodeId] | NodeId] = set()

    @property
    def cause_id(self) -> CauseId:
        return self._log.cause_id

    @cause_id.setter
    def cause_id(self, cause_id: CauseId) -> None:
        self._log.cause_id = cause_id

    # --- What can be seen -------------------------------------------------------------------------------------------

    @property
    def image(self) -> MetadataImage:
        """The state that the believed broker reports."""
        return self._state.image

    @property
    def counts(self) -> ClientCounts:
        """The counts that the client process reported last."""
        return self._client.counts

    def log_names(self, node_id: NodeId) -> frozenset[str]:
        """Raises an error: no client can see the logs of a node."""
        raise StepError(f"nobody knows which logs node {node_id} has")

    def log_end(self, node_id: NodeId, partition: TopicPartition) -> Offset:
        """Raises an error: no client can see the logs of a node."""
        raise StepError(f"nobody knows where the log of {partition} on node {node_id} ends")

    def is_running(self, node_id: NodeId) -> bool:
        """Returns whether no step has ended the node."""
        return node_id not in self._down

    def is_awaited(self, node_id: NodeId) -> bool:
        """Returns False: there is no standby controller."""
        return False

    def together(self, node_id: NodeId) -> tuple[NodeId, ...]:
        """Returns the node alone: it is unknown which nodes share its process."""
        return (node_id,)

    def is_paused(self, node_id: NodeId) -> bool:
        """Returns whether a step has paused it."""
        return node_id in self._paused

    @property
    def has_broken_links(self) -> bool:
        """Steps have cut links, and not healed them."""
        return bool(self._cut)

    @property
    def now_ms(self) -> int:
        """The machine's monotonic time."""
        return time.monotonic_ns() // 1_000_000

    def intercepted(self, channel: Channel[NodeId]) -> int:
        """Returns 0: no message is intercepted."""
        return 0

    async def committed_end(self) -> MetadataOffset:
        """Asks all brokers again, so that the state that is observed next is no older."""
        await self._state.refresh()
        return _NO_OFFSET

    async def wait(self, see: Callable[[], Observation], *, timeout_s: float) -> Observation:
        """Waits on the machine's clock."""
        return await self._changes.wait(see, timeout_s=timeout_s)

    async def pause(self, *, duration_ms: int) -> None:
        """Sleeps."""
        await asyncio.sleep(duration_ms / 1000)

    # --- What can be done -------------------------------------------------------------------------------------------

    async def perform(self, action: actions.Action) -> actions.Outcome:
        """Runs the action's hook; a batch is sent by the client process."""
        if isinstance(action, actions.Produce):
            self._client.produce(action.producer, action.partition, action.records)
            return actions.effective("sent")
        begun_ns = time.monotonic_ns()
        if isinstance(action, BREAKS):  # a hook that fails may have broken something
            self._remember(action)
        outcome = await perform_by_hook(self._hooks, action, answers=self._answers)
        broken = tuple(link for link in self._cut if isinstance(link, Link))
        for event in fault_events(
            action,
            effect=outcome.seen if outcome.affected else None,
            cause_id=self.cause_id,
            before=_NO_OFFSET,
            after=_NO_OFFSET,
            broken=broken,
            begun_ns=begun_ns,
            proved_ns=time.monotonic_ns(),
        ):
            self.note(event)
        if not isinstance(action, BREAKS):
            self._remember(action)
        return outcome

    async def mend(self) -> None:
        """Heals, resumes and starts whatever steps have broken, as far as there are hooks for it.

        Raises:
            HookError: a hook failed; the others are run.
        """
        failed: list[HookError] = []
        due = [
            *repairs(self, self._hooks.names),
            *(actions.Connect(nodes=(node_id,)) for node_id in self._disconnected),
        ]
        for action in due:
            if hook_name(type(action)) in self._hooks.hooks:
                try:
                    await self.perform(action)
                except HookError as error:
                    failed.append(error)
        if failed:
            raise failed[0]

    def _remember(self, action: actions.Action) -> None:
        match action:
            case actions.Kill(nodes=nodes) | actions.PowerLoss(nodes=nodes) | actions.Stop(nodes=nodes):
                self._down.update(nodes)
                self._paused.difference_update(nodes)
            case actions.Start(nodes=nodes) | actions.ReplaceDisk(nodes=nodes):
                self._down.difference_update(nodes)
            case actions.Disconnect(nodes=nodes):
                self._disconnected.update(nodes)
            case actions.Connect(nodes=nodes):
                self._disconnected.difference_update(nodes)
            case actions.Pause(nodes=nodes):
                self._paused.update(nodes)
            case actions.Resume(nodes=nodes):
                self._paused.difference_update(nodes)
            case actions.Isolate(nodes=nodes):
                self._cut.update(nodes)
            case actions.Cut(link=link) | actions.LoseResponses(link=link) | actions.HalfOpen(link=link):
                self._cut.add(link)
            case actions.HealAll():
                self._cut.clear()
            case actions.HealNodes(nodes=nodes):
                self._cut = {
                    each for each in self._cut if not set(each if isinstance(each, Link) else (each,)) & set(nodes)
                }
            case actions.HealLink(link=link):
                self._cut.discard(link)
            case _:
                pass

    async def _answers(self, broker_id: BrokerId) -> bool:
        try:
            async with asyncio.timeout(_PROBE_S):
                async with self._connected(broker_id):
                    pass
        except (OSError, TimeoutError):
            return False
        return True

    async def ask_controller(self, request: messages.Request) -> messages.Response:
        """Asks the broker that is believed, which passes it on.

        Raises:
            AdminError: there was no answer in time.
        """
        if isinstance(request, admin_messages.DescribeClusterRequest):
            return self._described()
        response = await self._ask(lambda: self._state.believed, request)
        if _is_refused(response):  # brokers that pass nothing on
            response = await self._ask(lambda: self._state.controller, request)
        match request, response:
            case admin_messages.CreateTopicsRequest(), admin_messages.CreateTopicsResponse(topics=topics):
                self.made_topics.update(topic.name for topic in topics if topic.error is ErrorCode.NONE)
            case admin_messages.DeleteTopicsRequest(), admin_messages.DeleteTopicsResponse(topics=topics):
                self.made_topics.difference_update(topic.name for topic in topics if topic.error is ErrorCode.NONE)
            case _:
                pass
        return response

    async def ask_broker(self, broker_id: BrokerId, request: messages.Request) -> messages.Response | None:
        """Asks a broker itself."""
        try:
            return await self._ask(lambda: broker_id, request)
        except AdminError:
            return None

    async def _ask(self, to: Callable[[], BrokerId | None], request: messages.Request) -> messages.Response:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _ANSWERS_WITHIN_S
        reason = "no broker answers"
        while loop.time() < deadline:
            broker_id = to()
            if broker_id is not None:
                try:
                    async with asyncio.timeout_at(deadline):
                        async with self._connected(broker_id) as connection:
                            return await ask_admin(connection, request)
                except OSError as error:  # a timeout is one
                    reason = str(error) or reason
            await asyncio.sleep(_ASK_AGAIN_S)
        name = type(request).__name__.removesuffix("Request")
        raise AdminError(api=name, error=ErrorCode.NETWORK_EXCEPTION, reason=reason)

    def _connected(self, broker_id: BrokerId) -> AbstractAsyncContextManager[KafkaConnection]:
        return connected(self._cluster.addresses[broker_id], numbers=self._cluster.broker_numbers)

    def _described(self) -> admin_messages.DescribeClusterResponse:
        """Returns the cluster with its live brokers; the metadata that each has applied is not known."""
        brokers = tuple(
            admin_messages.DescribedBroker(
                broker_id=broker_id,
                broker_epoch=registration.broker_epoch,
                incarnation_id=registration.incarnation_id,
                is_fenced=registration.fenced,
                in_controlled_shutdown=False,
                applied_offset=_NO_OFFSET,
            )
            for broker_id, registration in sorted(self.image.brokers.items())
        )
        return admin_messages.DescribeClusterResponse(
            error=ErrorCode.NONE,
            cluster_id=self._cluster.cluster_id,
            controller_id=CONTROLLER,
            metadata_end_offset=_NO_OFFSET,
            brokers=brokers,
        )

    def note(self, event: events.Event) -> None:
        """Writes into the harness's event file."""
        self._log.note(event)


def _is_refused(response: messages.Response) -> bool:
    """Returns whether a response says, as a whole or for a part, that the broker is not the controller."""
    parts = (each for name in ("topics", "partitions", "resources") for each in getattr(response, name, ()))
    return any(getattr(each, "error", None) is ErrorCode.NOT_CONTROLLER for each in (response, *parts))
