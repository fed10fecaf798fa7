"""The simulator as a scene: the same cores in virtual time, which passes only while somebody waits.

A fault has bitten here when it changed anything: a process that ran, a link that was open and led to somebody. Proofs
from outside, as real processes need them, would ask the same state again.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from random import Random
from typing import Final, TypeAlias

from chaos.barriers import Sight
from chaos.faults.injury import Injury, Recovery
from chaos.scenario import CLIENT, CONTROLLER, Clients
from chaos.simulated_clients import SimulatedClients
from chaos.waiting import Missed
from emulator.client.control import Progress
from emulator.core.errors import EmulatorError
from emulator.core.events import Event
from emulator.core.image import MetadataImage
from emulator.core.messages import Request, Response
from emulator.core.types import BrokerId, CauseId, MetadataOffset, NodeId, Offset, TopicPartition
from emulator.simulator.cluster import SimulatedCluster
from emulator.simulator.disk import Keep as DiskKeep
from emulator.simulator.disk import TruncationFate as DiskFate
from emulator.simulator.disk import unsynced_batches
from emulator.simulator.network import Link
from emulator.simulator.nodes import BrokerNode, ControllerNode
from emulator.storage.power_loss_plan import ExactLoss, Keep, TruncationFate

_ANSWER_TIMEOUT_MS: Final = 10_000
_STOP_TIMEOUT_MS: Final = 30_000

_Process: TypeAlias = BrokerNode | ControllerNode


class SimulatedCrash(EmulatorError):
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
    """Turns whatever a core raises into a ``SimulatedCrash``."""
    try:
        yield
    except (EmulatorError, Missed):
        raise
    except Exception as error:  # a bug of a core must not take the harness along: the run ends, and says why
        raise SimulatedCrash(cause=error) from error


class SimulatedScene:
    """A simulated cluster with its clients; each method does what ``Scene`` says."""

    def __init__(self, cluster: SimulatedCluster, clients: SimulatedClients) -> None:
        self._cluster = cluster
        self._clients = clients
        self._image = MetadataImage()
        self._folded = 0
        self._downed: dict[NodeId, str] = {}

    # --- Watching ---------------------------------------------------------------------------------------------------

    @property
    def cause_id(self) -> CauseId:
        """Of what happens now."""
        return self._cluster.event_log.cause_id

    @cause_id.setter
    def cause_id(self, cause_id: CauseId) -> None:
        self._cluster.event_log.cause_id = cause_id

    @property
    def image(self) -> MetadataImage:
        """Fold of what the controller synced: all that any broker may know."""
        node = self._cluster.controller_node
        for batch in node.log[self._folded : node.synced]:
            for position, record in enumerate(batch.records):
                self._image.replay(record, offset=MetadataOffset(batch.base_offset + position))
            self._image.take_delta()
        self._folded = max(self._folded, node.synced)
        return self._image

    @property
    def progress(self) -> Progress:
        """What the clients count."""
        return self._clients.progress

    def log_names(self, node_id: NodeId) -> frozenset[str]:
        """Looks onto the broker's disk; the controller has no logs."""
        if node_id == CONTROLLER:
            return frozenset()
        disk = self._cluster.nodes[BrokerId(node_id)].disk
        strays = (f"{stray.partition}.{stray.topic_id}-stray" for stray in disk.strays)
        return frozenset(map(str, disk.logs)).union(strays)

    def log_end(self, node_id: NodeId, partition: TopicPartition) -> Offset:
        """Looks at the disk."""
        log = self._cluster.nodes[BrokerId(node_id)].disk.logs.get(partition)
        return Offset(0) if log is None else log.log_end_offset

    def produce(self, producer: str, partition: TopicPartition, records: int) -> None:
        """Offers them to the producer's state machine."""
        with cores_at_work():
            self._clients.produce(producer, partition, records)

    async def committed_end(self) -> MetadataOffset:
        """Looks into the controller."""
        return self._cluster.controller.committed_end_offset

    async def wait(self, see: Callable[[], Sight], *, timeout_s: float) -> Sight:
        """Lets virtual time pass, and looks whenever metadata, a count or a disk changed."""
        sight: Sight | None = None
        looked_at: tuple[int, ...] | None = None

        def is_reached() -> bool:
            nonlocal sight, looked_at
            disks = [node.disk for node in self._cluster.nodes.values()]
            names = sum(len(disk.logs) << 16 | len(disk.strays) for disk in disks)
            ends = sum(log.log_end_offset for disk in disks for log in disk.logs.values())
            now = (self._cluster.controller_node.synced, self._clients.version, names, ends)
            if now != looked_at:
                sight, looked_at = see(), now
            return sight is not None and sight.reached

        with cores_at_work():
            self._cluster.run_until(is_reached, within_ms=round(timeout_s * 1000))
        sight = see()
        if not sight.reached:
            raise Missed(f"not reached within {timeout_s:g} s; seen: {sight.text}")
        return sight

    def note(self, event: Event) -> None:
        """Writes into the journal."""
        self._cluster.event_log.note(event)

    async def ask_controller(self, request: Request) -> Response:
        """Asks past all links, and lets time pass until there is an answer."""
        with cores_at_work():
            request_id = self._cluster.clients.ask(CONTROLLER, request, cause=self.cause_id)
            self._cluster.run_until(lambda: request_id in self._cluster.clients.answers, within_ms=_ANSWER_TIMEOUT_MS)
        answer = self._cluster.clients.answers.get(request_id)
        if answer is None:
            raise NoAnswerError(request=type(request).__name__)
        return answer

    # --- Processes --------------------------------------------------------------------------------------------------

    def _node(self, node_id: NodeId) -> _Process:
        return self._cluster.controller_node if node_id == CONTROLLER else self._cluster.nodes[BrokerId(node_id)]

    def is_running(self, node_id: NodeId) -> bool:
        """Whether it has a core."""
        return self._node(node_id).core is not None

    def is_paused(self, node_id: NodeId) -> bool:
        """Whether its inputs wait."""
        return self._node(node_id).is_paused

    async def kill(self, node_id: NodeId) -> Injury:
        """Ends the core; the disk keeps its page cache."""
        if not self.is_running(node_id):
            return Injury(fault="kill", target=str(node_id), bit=None)
        self._end(node_id)
        self._downed[node_id] = "kill"
        return Injury(fault="kill", target=str(node_id), bit="the process was killed")

    def _end(self, node_id: NodeId) -> None:
        if node_id == CONTROLLER:
            self._cluster.processes.kill_controller()
        else:
            self._cluster.processes.kill(BrokerId(node_id))

    async def stop(self, node_id: NodeId) -> Injury:
        """Asks the core to leave; one that does not in time, or is paused, is killed and counts as crashed."""
        node = self._node(node_id)
        if node.core is None:
            return Injury(fault="stop", target=str(node_id), bit=None)
        self._downed[node_id] = "stop"
        if not node.is_paused:
            with cores_at_work():
                if node_id == CONTROLLER:
                    self._cluster.processes.stop_controller()
                else:
                    self._cluster.processes.stop(BrokerId(node_id))
                self._cluster.run_until(lambda: node.core is None, within_ms=_STOP_TIMEOUT_MS)
        if node.core is None:
            return Injury(fault="stop", target=str(node_id), bit="the process stopped")
        self._end(node_id)
        return Injury(fault="stop", target=str(node_id), bit="the process was killed, as it did not stop")

    async def start(self, node_id: NodeId) -> Recovery:
        """Makes a new core on the node's disk."""
        fault = self._downed.pop(node_id, "stop")
        if self.is_running(node_id):
            return Recovery(fault=fault, target=str(node_id), seen=None)
        with cores_at_work():
            if node_id == CONTROLLER:
                self._cluster.processes.start_controller()
            else:
                self._cluster.processes.start(BrokerId(node_id))
        return Recovery(fault=fault, target=str(node_id), seen=f"incarnation {self._node(node_id).incarnation} runs")

    async def pause(self, node_id: NodeId) -> Injury:
        """Lets inputs wait from now on."""
        is_changed = self.is_running(node_id) and not self.is_paused(node_id)
        if is_changed:
            self._pause(self._node(node_id))
        return Injury(fault="pause", target=str(node_id), bit="it stands still" if is_changed else None)

    def _pause(self, node: _Process) -> None:
        if isinstance(node, BrokerNode):
            self._cluster.processes.pause(node)
        else:
            self._cluster.processes.pause(node)

    async def resume(self, node_id: NodeId) -> Recovery:
        """Hands in what waited."""
        is_changed = self.is_paused(node_id)
        node = self._node(node_id)
        with cores_at_work():
            if isinstance(node, BrokerNode):
                self._cluster.processes.resume(node)
            else:
                self._cluster.processes.resume(node)
        return Recovery(fault="pause", target=str(node_id), seen="it runs" if is_changed else None)

    async def power_loss(self, seeds: Mapping[NodeId, int], keep: Keep, exact: ExactLoss | None) -> Injury:
        """Ends cores and takes from their disks what is not synced."""
        killed = sum(self.is_running(node_id) for node_id in seeds)
        lost = 0
        for node_id, seed in seeds.items():
            self._downed[node_id] = "power_loss"
            if node_id == CONTROLLER:
                self._cluster.processes.power_loss_controller()
            else:
                lost += self._lose_disk(BrokerId(node_id), keep, exact or self._draw(BrokerId(node_id), keep, seed))
        target = ",".join(str(node_id) for node_id in seeds)
        bit = f"{killed} processes killed, {lost} unsynced batches lost" if killed or lost else None
        return Injury(fault="power_loss", target=target, bit=bit)

    def _draw(self, broker_id: BrokerId, keep: Keep, seed: int) -> ExactLoss:
        chance = Random(seed)
        is_undone = keep is Keep.NONE or chance.random() < 0.5
        return ExactLoss(
            kept=chance.randrange(max(1, unsynced_batches(self._cluster.nodes[broker_id].disk))),
            truncation=TruncationFate.UNDONE if is_undone else TruncationFate.KEPT,
        )

    def _lose_disk(self, broker_id: BrokerId, keep: Keep, exact: ExactLoss) -> int:
        disk = self._cluster.nodes[broker_id].disk
        before = sum(len(log.batches) for log in disk.logs.values())
        self._cluster.processes.power_loss(
            broker_id,
            DiskKeep(keep.value),
            kept=exact.kept,
            truncation=DiskFate(exact.truncation.value),
            names=exact.names,
        )
        return before - sum(len(log.batches) for log in disk.logs.values())

    async def replace_disk(self, node_id: NodeId) -> Injury:
        """Ends the core, and empties its disk."""
        self._downed[node_id] = "replace_disk"
        self._cluster.processes.replace_disk(BrokerId(node_id))
        return Injury(fault="replace_disk", target=str(node_id), bit="the disk is empty")

    # --- Links ------------------------------------------------------------------------------------------------------

    @property
    def has_broken_links(self) -> bool:
        """Whether the network lacks any."""
        return bool(self._broken())

    def _broken(self) -> set[Link]:
        return self._cluster.network.cuts | self._cluster.network.losing

    def _links(self) -> list[Link]:
        """Who dials whom: the client every node, and the nodes each other."""
        nodes = [*(NodeId(broker) for broker in self._cluster.nodes), CONTROLLER]
        return [(source, target) for source in (CLIENT, *nodes) for target in nodes if source != target]

    def _break(self, links: Iterable[Link], change: Callable[[NodeId, NodeId], None]) -> str | None:
        wanted = list(links)
        live = [
            (source, target)
            for source, target in wanted
            if (source, target) not in self._broken() and self.is_running(target) and not self.is_paused(target)
        ]
        for source, target in wanted:
            change(source, target)
        return f"{len(live)} of {len(wanted)} links silent" if live else None

    async def isolate(self, node_id: NodeId, clients: Clients) -> Injury:
        """Cuts its links."""
        links = [link for link in self._links() if node_id in link and (clients is Clients.CUT or link[0] != CLIENT)]
        return Injury(fault="isolate", target=str(node_id), bit=self._break(links, self._cluster.links.cut))

    async def cut(self, source: NodeId, target: NodeId) -> Injury:
        """Cuts one link."""
        bit = self._break([(source, target)], self._cluster.links.cut)
        return Injury(fault="cut", target=_name((source, target)), bit=bit)

    async def lose_responses(self, source: NodeId, target: NodeId) -> Injury:
        """Lets one link lose what comes back, unless it is cut."""
        link = (source, target)
        is_open = link not in self._broken()
        bit = self._break([link], self._cluster.links.lose_responses) if is_open else None
        return Injury(fault="lose", target=_name(link), bit=bit)

    async def heal_all(self) -> Recovery:
        """Mends every link."""
        return Recovery(fault="heal", target="all", seen=self._mend(self._links()))

    async def heal_node(self, node_id: NodeId) -> Recovery:
        """Mends its links."""
        seen = self._mend(link for link in self._links() if node_id in link)
        return Recovery(fault="heal", target=str(node_id), seen=seen)

    async def heal_link(self, source: NodeId, target: NodeId) -> Recovery:
        """Mends one link."""
        return Recovery(fault="heal", target=_name((source, target)), seen=self._mend([(source, target)]))

    def _mend(self, links: Iterable[Link]) -> str | None:
        broken = [link for link in links if link in self._broken()]
        for source, target in broken:
            self._cluster.links.mend(source, target)
        return f"{len(broken)} links restored" if broken else None


def _name(link: Link) -> str:
    """Returns a link as real processes name it."""
    source, target = ("client" if end == CLIENT else str(end) for end in link)
    return f"{source}->{target}"
