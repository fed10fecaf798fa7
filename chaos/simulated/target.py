"""The simulator as a target: the same cores in virtual time, which passes only during a wait.

The simulator's own performer performs actions. A fault took effect if it affected anything: a process that ran, or an
open link to a node that answers.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeAlias

from laststand.chaos.play.barriers import Observation
from laststand.chaos.play.waiting import StepError
from laststand.chaos.simulated.clients import SimulatedClients
from laststand.emulator.client.control import ClientCounts
from laststand.emulator.core import events, messages
from laststand.emulator.core.errors import EmulatorError
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.types import BrokerId, CauseId, MetadataOffset, NodeId, Offset, TopicPartition
from laststand.emulator.plan import actions
from laststand.emulator.plan.channels import Channel, Link
from laststand.emulator.plan.faults import fault_events
from laststand.emulator.plan.machines import on_machines, together
from laststand.emulator.simulator.actions.performer import perform
from laststand.emulator.simulator.cluster.cluster import SimulatedCluster
from laststand.emulator.simulator.nodes.nodes import BrokerNode, MetadataNode

_ANSWER_TIMEOUT_MS: Final = 10_000
_LOOK_MS: Final = 50
"""Barriers are checked at least this often, because one of them waits for time."""

_STOP_TIMEOUT_MS: Final = 30_000

_Process: TypeAlias = BrokerNode | MetadataNode


class CoreCrashError(EmulatorError):
    """A core raised an exception: in a process, it would have ended that process."""

    def __init__(self, *, cause: Exception) -> None:
        super().__init__(f"a simulated node failed: {type(cause).__name__}: {cause}")
        self.cause = cause


class NoAnswerError(EmulatorError):
    """The simulated controller did not answer a request of the harness."""

    def __init__(self, *, request: str) -> None:
        super().__init__(f"{request}: the controller did not answer")
        self.request = request


@contextmanager
def cores_at_work() -> Iterator[None]:
    """Converts any exception of a core to a ``CoreCrashError``."""
    try:
        yield
    except EmulatorError:
        raise
    except Exception as error:  # a bug of a core must not take the harness along: the run ends, and says why
        raise CoreCrashError(cause=error) from error


class SimulatedTarget:
    """A simulated cluster with its clients; each method does what ``Target`` says."""

    def __init__(self, cluster: SimulatedCluster, clients: SimulatedClients) -> None:
        self._cluster = cluster
        self._clients = clients

    # --- What can be seen -------------------------------------------------------------------------------------------

    @property
    def cause_id(self) -> CauseId:
        return self._cluster.event_log.cause_id

    @cause_id.setter
    def cause_id(self, cause_id: CauseId) -> None:
        self._cluster.event_log.cause_id = cause_id

    @property
    def image(self) -> MetadataImage:
        """The committed metadata, all that any broker may know."""
        return self._cluster.image

    @property
    def counts(self) -> ClientCounts:
        """The counts of the clients."""
        return self._clients.counts

    def log_names(self, node_id: NodeId) -> frozenset[str]:
        """Looks at the broker's disk; the controller has no logs."""
        if node_id in self._cluster.metadata_nodes:
            return frozenset()
        disk = self._cluster.nodes[BrokerId(node_id)].disk
        strays = (f"{stray.partition}.{stray.topic_id}-stray" for stray in disk.strays)
        return frozenset(map(str, disk.logs)).union(strays)

    def log_end(self, node_id: NodeId, partition: TopicPartition) -> Offset:
        """Reads the simulated disk."""
        log = self._cluster.nodes[BrokerId(node_id)].disk.logs.get(partition)
        return Offset(0) if log is None else log.log_end_offset

    def _node(self, node_id: NodeId) -> _Process:
        return self._cluster.metadata_nodes.get(node_id) or self._cluster.nodes[BrokerId(node_id)]

    def is_running(self, node_id: NodeId) -> bool:
        """Returns whether a node's process runs: it has a core."""
        return self._node(node_id).core is not None

    def is_awaited(self, node_id: NodeId) -> bool:
        """Returns whether the node has had no process."""
        return self._cluster.is_awaited(node_id)

    def together(self, node_id: NodeId) -> tuple[NodeId, ...]:
        """Returns the nodes of its process."""
        return self._cluster.machine_of(node_id)

    def is_paused(self, node_id: NodeId) -> bool:
        """Returns whether the node's inputs wait."""
        return self._node(node_id).is_paused

    @property
    def has_broken_links(self) -> bool:
        return not self._cluster.network.is_whole

    @property
    def now_ms(self) -> int:
        return self._cluster.now_ms

    def intercepted(self, channel: Channel[NodeId]) -> int:
        """Reads the simulated network's count."""
        return self._cluster.network.intercepted[channel]

    async def committed_end(self) -> MetadataOffset:
        """Reads the simulated controller's log end."""
        return self._cluster.committed_end_offset

    async def wait(self, see: Callable[[], Observation], *, timeout_s: float) -> Observation:
        """Advances virtual time, and looks whenever metadata, a count or a disk changed."""
        cluster = self._cluster
        seen: Observation | None = None
        looked_at: tuple[object, ...] | None = None
        steps = -1
        disks = (0, 0)

        def is_reached() -> bool:
            nonlocal seen, looked_at, steps, disks
            if cluster.steps != steps:
                steps, disks = cluster.steps, self._disks()
            touched = cluster.network.intercepted.total()
            now = (cluster.image.next_offset, self._clients.version, disks, touched, cluster.now_ms // _LOOK_MS)
            if now != looked_at:
                seen, looked_at = see(), now
            return seen is not None and seen.reached

        with cores_at_work():
            self._cluster.run_until(is_reached, within_ms=round(timeout_s * 1000))
        seen = see()
        if not seen.reached:
            raise StepError(f"not reached within {timeout_s:g} s; seen: {seen.text}")
        return seen

    def _disks(self) -> tuple[int, int]:
        """Returns two numbers that change when a log appears, disappears or gets another end."""
        names = ends = 0
        for node in self._cluster.nodes.values():
            disk = node.disk
            names += len(disk.logs) << 16 | len(disk.strays)
            for log in disk.logs.values():
                ends += log.log_end_offset
        return names, ends

    async def pause(self, *, duration_ms: int) -> None:
        """Advances virtual time."""
        with cores_at_work():
            self._cluster.run(duration_ms)

    # --- What can be done -------------------------------------------------------------------------------------------

    async def perform(self, action: actions.Action) -> actions.Outcome:
        """Calls the simulator's performer; a batch is sent by the scenario's client."""
        if isinstance(action, actions.Produce):
            with cores_at_work():
                self._clients.produce(action.producer, action.partition, action.records)
            return actions.effective("sent")
        return together([(each, self._perform_and_note(each)) for each in on_machines(action, self.together)])

    def _perform_and_note(self, action: actions.Action) -> actions.Outcome:
        before = self._cluster.committed_end_offset
        broken = [Link(*link) for link in self._cluster.network.broken]
        begun_ns = self._cluster.event_log.now_ns
        outcome = self.end(action) if isinstance(action, actions.Stop) else self._perform(action)
        for event in fault_events(
            action,
            effect=outcome.seen if outcome.affected else None,
            cause_id=self.cause_id,
            before=before,
            after=self._cluster.committed_end_offset,
            broken=broken,
            begun_ns=begun_ns,
            proved_ns=self._cluster.event_log.now_ns,
        ):
            self.note(event)
        return outcome

    def _perform(self, action: actions.Action) -> actions.Outcome:
        with cores_at_work():
            return perform(self._cluster, action)

    def end(self, action: actions.Stop[NodeId] | actions.Kill[NodeId]) -> actions.Outcome:
        """Ends nodes; those that do not stop in time, or are paused, are killed and count as crashed."""
        outcome = self._perform(action)
        if isinstance(action, actions.Kill):
            return outcome
        with cores_at_work():
            self._cluster.run_until(
                lambda: not any(self.is_running(node) and not self.is_paused(node) for node in action.nodes),
                within_ms=_STOP_TIMEOUT_MS,
            )
        left = tuple(node for node in action.nodes if self.is_running(node))
        if left:
            self._perform(actions.Kill(nodes=left))
            return actions.effective("the process was killed, as it did not stop")
        return actions.effective("the process stopped") if outcome.took_effect else outcome

    async def ask_controller(self, request: messages.Request) -> messages.Response:
        """Sends the request bypassing all links, and advances time until there is a response."""
        answer = self._ask(self._cluster.metadata_node.node_id, request)
        if answer is None:
            raise NoAnswerError(request=type(request).__name__)
        return answer

    async def ask_broker(self, broker_id: BrokerId, request: messages.Request) -> messages.Response | None:
        """Sends a request to a broker, bypassing all links, and advances time until there is a response."""
        return self._ask(broker_id, request)

    def _ask(self, node_id: NodeId, request: messages.Request) -> messages.Response | None:
        with cores_at_work():
            request_id = self._cluster.clients.ask(node_id, request, cause=self.cause_id)
            self._cluster.run_until(lambda: request_id in self._cluster.clients.answers, within_ms=_ANSWER_TIMEOUT_MS)
        return self._cluster.clients.answers.get(request_id)

    def note(self, event: events.Event) -> None:
        """Adds an event to the journal."""
        self._cluster.event_log.note(event)
