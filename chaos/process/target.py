"""Real processes as a target: faults on processes, files and proxies, each of which verifies that it took effect."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from laststand.chaos.play.barriers import Observation
from laststand.chaos.play.waiting import ChangeSignal
from laststand.chaos.process.annotations import Annotations
from laststand.chaos.process.client_link import ClientLink
from laststand.chaos.process.controller_requests import ask
from laststand.chaos.process.harness_log import HarnessLog
from laststand.chaos.process.message_faults import MessageFaults
from laststand.emulator.client.active_controller import ActiveController
from laststand.emulator.client.admin_error import AdminError
from laststand.emulator.client.control import ClientCounts
from laststand.emulator.cluster.child import EndCause, ProcessEnd
from laststand.emulator.cluster.node_files import FindLogEnd, ListLogs
from laststand.emulator.cluster.process_cluster import ProcessCluster
from laststand.emulator.core import events
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.messages import Request, Response
from laststand.emulator.core.types import BrokerId, CauseId, MetadataOffset, NodeId, Offset, TopicPartition
from laststand.emulator.plan import actions
from laststand.emulator.plan.channels import Channel
from laststand.emulator.plan.faults import fault_events
from laststand.emulator.plan.machines import on_machines, together
from laststand.emulator.plan.steps import action_text
from laststand.emulator.rpc.channel import keepalive_for
from laststand.emulator.rpc.orders import is_order, order_given

Execute: TypeAlias = Callable[["ProcessTarget", actions.Action], Awaitable[actions.Outcome]]
"""Performs an action on processes; returns when it is done, with how that was seen."""


class CommittedMetadata(Protocol):
    """A view of the metadata that the controller committed."""

    @property
    def image(self) -> MetadataImage:
        """Fold of everything that was received."""
        ...

    async def committed_end(self) -> MetadataOffset:
        """Returns the controller's committed end offset; the last known one if the controller does not answer."""
        ...


@dataclass(kw_only=True, eq=False)
class ProcessTarget:
    """The processes of a cluster and of its clients, their committed metadata, and the harness's log.

    ``Target`` describes its methods.

    Attributes:
        changes: fires when the committed state changed.
        session_timeout_ms: of the cluster; a cut under a channel in use is noticed within it.
        messages: the faults of single messages.
        client: the client process.
        annotations: describe actions to people.
        execute: finds an action's executor and calls it.
        downed: the fault by which each node went down, until it is started again.
    """

    cluster: ProcessCluster
    metadata: CommittedMetadata
    log: HarnessLog
    changes: ChangeSignal
    session_timeout_ms: int
    messages: MessageFaults
    client: ClientLink
    annotations: Annotations
    execute: Execute
    downed: dict[NodeId, str] = field(default_factory=dict)
    _noted_ends: dict[NodeId, int] = field(default_factory=dict)

    @property
    def cause_id(self) -> CauseId:
        return self.log.cause_id

    @cause_id.setter
    def cause_id(self, cause_id: CauseId) -> None:
        self.log.cause_id = cause_id

    @property
    def image(self) -> MetadataImage:
        """The metadata that the controller committed, as far as it is known."""
        return self.metadata.image

    @property
    def counts(self) -> ClientCounts:
        """The counts that the client process reported last."""
        return self.client.counts

    def log_names(self, node_id: NodeId) -> frozenset[str]:
        """Lists the node's log directory, whether the node runs or not."""
        return self.cluster.files.perform(ListLogs(node_id=node_id))

    def log_end(self, node_id: NodeId, partition: TopicPartition) -> Offset:
        """Reads the segments, as recovery would."""
        return self.cluster.files.perform(FindLogEnd(node_id=node_id, partition=partition))

    def is_running(self, node_id: NodeId) -> bool:
        """Returns whether the supervisor has such a child."""
        return self.cluster.is_running(node_id)

    def is_awaited(self, node_id: NodeId) -> bool:
        """Returns whether the node has had no process in this run directory."""
        return self.cluster.is_awaited(node_id)

    def together(self, node_id: NodeId) -> tuple[NodeId, ...]:
        """Returns the nodes of its process, by the layout."""
        return self.cluster.layout.machine_of(node_id)

    def is_paused(self, node_id: NodeId) -> bool:
        """Returns whether a signal has stopped the process."""
        return self.cluster.is_paused(node_id)

    @property
    def has_broken_links(self) -> bool:
        links = self.cluster.toxiproxy
        return (links is not None and bool(links.broken)) or bool(self.messages.channels)

    @property
    def now_ms(self) -> int:
        """The machine's monotonic time."""
        return time.monotonic_ns() // 1_000_000

    def intercepted(self, channel: Channel[NodeId]) -> int:
        """Counts the intercepted messages of a channel, from the events of the called node."""
        return self.messages.intercepted(channel)

    async def committed_end(self) -> MetadataOffset:
        """Asks the controller for the present end of its committed records."""
        return await self.metadata.committed_end()

    async def wait(self, see: Callable[[], Observation], *, timeout_s: float) -> Observation:
        """Waits on the machine's clock until ``see`` says that a state is reached.

        Raises:
            StepError: the state was not reached within ``timeout_s`` seconds.
        """
        return await self.changes.wait(see, timeout_s=timeout_s)

    async def pause(self, *, duration_ms: int) -> None:
        """Sleeps."""
        await asyncio.sleep(duration_ms / 1000)

    async def perform(self, action: actions.Action) -> actions.Outcome:
        """Calls the action's executor; a batch is sent by the client process."""
        if isinstance(action, actions.Produce):
            self.client.produce(action.producer, action.partition, action.records)
            return actions.effective("sent")
        if isinstance(action, actions.Transact):
            self.client.transact(action)
            return actions.effective("sent")
        if isinstance(action, actions.Consume):
            self.client.consume(action)
            return actions.effective("sent")
        if isinstance(action, actions.Member):
            self.client.do_as_member(action)
            return actions.effective("sent")
        parts = on_machines(action, self.together)
        outcomes = await asyncio.gather(*map(self._perform, parts))
        return together([*zip(parts, outcomes, strict=True)])

    async def _perform(self, action: actions.Action) -> actions.Outcome:
        links = self.cluster.toxiproxy
        broken = () if links is None else links.broken
        before = await self.committed_end()
        begun_ns, wall_ns = time.monotonic_ns(), time.time_ns()
        outcome = await self.execute(self, action)
        proved_ns = time.monotonic_ns()
        if outcome.took_effect:
            self.annotations.send(
                f"{action_text(action)}: {outcome.seen}",
                tags=(actions.spec_of(action).verb, f"run:{self.cluster.layout.run}"),
                begun_ns=wall_ns,
                ended_ns=wall_ns + proved_ns - begun_ns,
            )
        if not outcome.took_effect and self.log.is_by_hand:
            return outcome  # nothing changed, and the sender gets that answer: there is no fault to account for
        after = await self.committed_end()
        for event in fault_events(
            action,
            effect=outcome.seen if outcome.affected else None,
            cause_id=self.cause_id,
            before=before,
            after=after,
            broken=broken,
            begun_ns=begun_ns,
            proved_ns=proved_ns,
            kafka_links=tuple(self.cluster.layout.kafka_links),
        ):
            self.note(event)
        return outcome

    async def ask_controller(self, request: Request) -> Response:
        """Sends the request to the active controller's own port."""
        layout = self.cluster.layout
        return await ActiveController(self._ask_node, layout.controller_ids).ask(layout.controller_id, request)

    async def ask_broker(self, broker_id: BrokerId, request: Request) -> Response | None:
        """Sends the request to the broker's own port."""
        try:
            return await self._ask_node(broker_id, request)
        except AdminError:
            return None

    async def _ask_node(self, node_id: NodeId, request: Request) -> Response:
        if is_order(request):
            self.note(order_given(request, to=node_id, cause_id=self.cause_id))
        return await ask(
            self.cluster.direct_addresses()[node_id],
            request,
            keepalive=keepalive_for(session_timeout_ms=self.session_timeout_ms),
            token=self.cluster.token,
            node_id=node_id,
        )

    def note(self, event: events.Event) -> None:
        """Writes into the harness's event file."""
        self.log.note(event)

    def in_force(self) -> tuple[str, ...]:
        """Returns descriptions of all faults in force: those that were injected, and nodes that ended by themselves."""
        by_themselves = (
            f"node {node_id} is down by itself"
            for node_id in self.cluster.layout.node_ids
            if not (self.is_running(node_id) or self.is_awaited(node_id) or node_id in self.downed)
        )
        return (*self.log.faults.describe(now_s=time.monotonic()), *by_themselves)

    def is_answering(self, node_id: NodeId) -> bool:
        """Returns whether a node's process runs and is not paused."""
        return self.cluster.is_running(node_id) and not self.cluster.is_paused(node_id)

    def note_end(
        self, node_id: NodeId, end: events.IncarnationEnd, process_end: ProcessEnd, committed: MetadataOffset
    ) -> None:
        """Records the end of a node's process as planned; an unplanned one was recorded when it happened."""
        if process_end.cause not in (EndCause.STOPPED, EndCause.KILLED):
            return
        for each in self.together(node_id):
            incarnation = self.cluster.incarnation(each)
            if self._noted_ends.get(each) != incarnation:
                self._noted_ends[each] = incarnation
                self.log.ended(each, incarnation, end, exit_code=process_end.exit_code, metadata_offset=committed)

    async def take_down(
        self,
        nodes: Sequence[NodeId],
        end: Callable[[NodeId], Awaitable[ProcessEnd | None]],
        *,
        fault: str,
        recorded_as: events.IncarnationEnd,
    ) -> list[ProcessEnd]:
        """Ends the processes of nodes together and records that, at one metadata offset.

        Args:
            nodes: those that run are down by ``fault`` from now on.
            end: ends one node's process; ``None`` if none ran.
            fault: name of the fault.
            recorded_as: kind of end for the harness's log.

        Returns:
            The ends of the processes that ran, in the order of ``nodes``.
        """
        ends = await asyncio.gather(*(end(node_id) for node_id in nodes))
        committed = await self.committed_end()
        for node_id, process_end in zip(nodes, ends, strict=True):
            if process_end is not None:
                self.downed.update(dict.fromkeys(self.together(node_id), fault))
                self.note_end(node_id, recorded_as, process_end, committed)
        return [process_end for process_end in ends if process_end is not None]
