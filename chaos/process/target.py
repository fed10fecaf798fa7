"""Real processes as a target: faults on processes, files and proxies, each of which verifies that it took effect."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from laststand.chaos.play.barriers import Observation
from laststand.chaos.play.waiting import ChangeSignal
from laststand.chaos.process.annotations import Annotations, annotated
from laststand.chaos.process.client_link import ClientLink
from laststand.chaos.process.controller_requests import ask
from laststand.chaos.process.fault_target import FaultTarget
from laststand.chaos.process.faults import execute
from laststand.chaos.process.harness_log import HarnessLog
from laststand.chaos.process.message_faults import MessageFaults
from laststand.chaos.process.metadata_observer import MetadataObserver
from laststand.emulator.client.admin_error import AdminError
from laststand.emulator.client.control import ClientCounts
from laststand.emulator.cluster.node_files import FindLogEnd, ListLogs
from laststand.emulator.cluster.process_cluster import ProcessCluster
from laststand.emulator.core.events import Event
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.messages import Request, Response
from laststand.emulator.core.types import BrokerId, CauseId, MetadataOffset, NodeId, Offset, TopicPartition
from laststand.emulator.plan.actions import Action, Outcome, Produce, deed_of, effective
from laststand.emulator.plan.channels import Channel
from laststand.emulator.plan.faults import fault_events
from laststand.emulator.plan.steps import action_text
from laststand.emulator.rpc.channel import keepalive_for
from laststand.emulator.rpc.orders import is_order, order_given


class ProcessTarget:
    """Processes and their clients; each method does what ``Target`` says.

    Args:
        faults: processes, committed state and log.
        client: the client process.
        annotations: where deeds are told to people.
    """

    def __init__(self, *, faults: FaultTarget, client: ClientLink, annotations: Annotations) -> None:
        self.faults = faults
        self._client = client
        self._annotations = annotations

    @property
    def cause_id(self) -> CauseId:
        """Cause of new events."""
        return self.faults.log.cause_id

    @cause_id.setter
    def cause_id(self, cause_id: CauseId) -> None:
        self.faults.log.cause_id = cause_id

    @property
    def image(self) -> MetadataImage:
        """Fold of the metadata stream."""
        return self.faults.image

    @property
    def counts(self) -> ClientCounts:
        """What the client process reported last."""
        return self._client.counts

    def log_names(self, node_id: NodeId) -> frozenset[str]:
        """Looks into the directory, whether the node runs or not."""
        return self.faults.cluster.files.perform(ListLogs(node_id=node_id))

    def log_end(self, node_id: NodeId, partition: TopicPartition) -> Offset:
        """Reads the segments, as recovery would."""
        return self.faults.cluster.files.perform(FindLogEnd(node_id=node_id, partition=partition))

    def is_running(self, node_id: NodeId) -> bool:
        """Whether the supervisor has such a child."""
        return self.faults.cluster.is_running(node_id)

    def is_paused(self, node_id: NodeId) -> bool:
        """Whether it was stopped by a signal."""
        return self.faults.cluster.is_paused(node_id)

    @property
    def has_broken_links(self) -> bool:
        """Whether anything is wrong with a proxy, or done to messages."""
        links = self.faults.cluster.toxiproxy
        return (links is not None and bool(links.broken)) or bool(self.faults.messages.channels)

    @property
    def now_ms(self) -> int:
        """The machine's."""
        return time.monotonic_ns() // 1_000_000

    def intercepted(self, channel: Channel[NodeId]) -> int:
        """Reads the events of who was dialled."""
        return self.faults.messages.intercepted(channel)

    async def committed_end(self) -> MetadataOffset:
        """Asks the controller."""
        return await self.faults.committed_end()

    async def wait(self, see: Callable[[], Observation], *, timeout_s: float) -> Observation:
        """Waits on the machine's clock."""
        return await self.faults.wait(see, timeout_s=timeout_s)

    async def pause(self, *, duration_ms: int) -> None:
        """Sleeps."""
        await asyncio.sleep(duration_ms / 1000)

    async def perform(self, action: Action) -> Outcome:
        """Calls the action's executor; a batch is sent by the client process."""
        if isinstance(action, Produce):
            self._client.produce(action.producer, action.partition, action.records)
            return effective("sent")
        links = self.faults.cluster.toxiproxy
        broken = () if links is None else links.broken
        before = await self.committed_end()
        begun_ns, wall_ns = time.monotonic_ns(), time.time_ns()
        outcome = await execute(self.faults, action)
        proved_ns = time.monotonic_ns()
        if outcome.took_effect:
            self._annotations.tell(
                f"{action_text(action)}: {outcome.seen}",
                tags=(deed_of(action).verb, f"run:{self.faults.cluster.layout.run}"),
                begun_ns=wall_ns,
                ended_ns=wall_ns + proved_ns - begun_ns,
            )
        if not outcome.took_effect and self.faults.log.is_by_hand:
            return outcome  # nothing is different, and who asked for it is told: there is no fault to account for
        after = await self.committed_end()
        for event in fault_events(
            action,
            bit=outcome.seen if outcome.bit else None,
            cause_id=self.cause_id,
            before=before,
            after=after,
            broken=broken,
            begun_ns=begun_ns,
            proved_ns=proved_ns,
        ):
            self.note(event)
        return outcome

    async def ask_controller(self, request: Request) -> Response:
        """Asks at the controller's own port."""
        return await self._ask_node(self.faults.cluster.layout.controller_id, request)

    async def ask_broker(self, broker_id: BrokerId, request: Request) -> Response | None:
        """Asks at the broker's own port."""
        try:
            return await self._ask_node(broker_id, request)
        except AdminError:
            return None

    async def _ask_node(self, node_id: NodeId, request: Request) -> Response:
        if is_order(request):
            self.note(order_given(request, to=node_id, cause_id=self.cause_id))
        return await ask(
            self.faults.cluster.direct_addresses()[node_id],
            request,
            keepalive=keepalive_for(session_timeout_ms=self.faults.session_timeout_ms),
            token=self.faults.cluster.token,
            node_id=node_id,
        )

    def note(self, event: Event) -> None:
        """Writes into the harness's event file."""
        self.faults.log.note(event)


@asynccontextmanager
async def open_target(
    cluster: ProcessCluster, *, client: ClientLink, log: HarnessLog, changes: ChangeSignal, session_timeout_ms: int
) -> AsyncIterator[ProcessTarget]:
    """Follows what the controller of a started cluster commits, and yields the target that sees it."""
    metadata = MetadataObserver(
        cluster.direct_addresses()[cluster.layout.controller_id],
        keepalive=keepalive_for(session_timeout_ms=session_timeout_ms),
        token=cluster.token,
        on_change=changes.change,
    )
    faults = FaultTarget(
        cluster=cluster,
        metadata=metadata,
        log=log,
        changes=changes,
        session_timeout_ms=session_timeout_ms,
        messages=MessageFaults(cluster, note=log.note),
    )
    async with annotated() as annotations, asyncio.TaskGroup() as tasks:
        following = tasks.create_task(metadata.run())
        yield ProcessTarget(faults=faults, client=client, annotations=annotations)
        following.cancel()
