"""Real processes as a scene: faults on processes, files and proxies, each of which proves that it bit."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

from chaos.admin import ask
from chaos.barriers import Sight
from chaos.client_link import ClientLink
from chaos.faults.cut import cut
from chaos.faults.heal import heal_all, heal_link, heal_node
from chaos.faults.injury import Injury, Recovery
from chaos.faults.isolate import isolate
from chaos.faults.kill import kill
from chaos.faults.lose_responses import lose_responses
from chaos.faults.pause import pause, resume
from chaos.faults.power_cycle import start, stop
from chaos.faults.power_loss import power_loss
from chaos.faults.replace_disk import replace_disk
from chaos.faults.stage import Stage
from chaos.harness_log import HarnessLog
from chaos.metadata_watch import MetadataWatch
from chaos.scenario import Clients
from chaos.waiting import Lookout
from emulator.client.control import Progress
from emulator.cluster.process_cluster import ProcessCluster
from emulator.core.events import Event
from emulator.core.image import MetadataImage
from emulator.core.messages import Request, Response
from emulator.core.types import CauseId, MetadataOffset, NodeId, Offset, TopicPartition
from emulator.rpc.channel import keepalive_for
from emulator.storage.power_loss import scan_log_end
from emulator.storage.power_loss_plan import ExactLoss, Keep


class ProcessScene:
    """A stage with its clients; each method does what ``Scene`` says.

    Args:
        stage: processes, committed state and log.
        client: the client process.
        lookout: is woken by changes of either.
    """

    def __init__(self, *, stage: Stage, client: ClientLink, lookout: Lookout) -> None:
        self.stage = stage
        self._client = client
        self._lookout = lookout

    @property
    def cause_id(self) -> CauseId:
        """Of what happens now."""
        return self.stage.log.cause_id

    @cause_id.setter
    def cause_id(self, cause_id: CauseId) -> None:
        self.stage.log.cause_id = cause_id

    @property
    def image(self) -> MetadataImage:
        """Fold of the metadata stream."""
        return self.stage.watch.image

    @property
    def progress(self) -> Progress:
        """What the client process told last."""
        return self._client.progress

    def log_names(self, node_id: NodeId) -> frozenset[str]:
        """Looks into the directory, whether the node runs or not."""
        data = self.stage.cluster.layout.data_directory(node_id)
        return frozenset(each.name for each in data.iterdir() if each.is_dir()) if data.is_dir() else frozenset()

    def log_end(self, node_id: NodeId, partition: TopicPartition) -> Offset:
        """Reads the segments, as recovery would."""
        return scan_log_end(str(self.stage.cluster.layout.data_directory(node_id) / str(partition)))

    def produce(self, producer: str, partition: TopicPartition, records: int) -> None:
        """Tells the client process."""
        self._client.produce(producer, partition, records)

    async def committed_end(self) -> MetadataOffset:
        """Asks the controller."""
        return await self.stage.watch.committed_end()

    async def wait(self, see: Callable[[], Sight], *, timeout_s: float) -> Sight:
        """Waits on the machine's clock."""
        return await self._lookout.wait(see, timeout_s=timeout_s)

    def note(self, event: Event) -> None:
        """Writes into the harness's event file."""
        self.stage.log.note(event)

    async def ask_controller(self, request: Request) -> Response:
        """Asks at the controller's own port."""
        cluster = self.stage.cluster
        return await ask(
            cluster.direct_addresses()[cluster.layout.controller_id],
            request,
            keepalive=keepalive_for(session_timeout_ms=self.stage.session_timeout_ms),
        )

    def is_running(self, node_id: NodeId) -> bool:
        """Whether the supervisor has such a child."""
        return self.stage.cluster.is_running(node_id)

    def is_paused(self, node_id: NodeId) -> bool:
        """Whether it was stopped by a signal."""
        return self.stage.cluster.is_paused(node_id)

    async def kill(self, node_id: NodeId) -> Injury:
        """SIGKILL."""
        return await kill(self.stage, node_id)

    async def stop(self, node_id: NodeId) -> Injury:
        """SIGTERM."""
        return await stop(self.stage, node_id)

    async def start(self, node_id: NodeId) -> Recovery:
        """A new process."""
        return await start(self.stage, node_id)

    async def pause(self, node_id: NodeId) -> Injury:
        """SIGSTOP."""
        return await pause(self.stage, node_id)

    async def resume(self, node_id: NodeId) -> Recovery:
        """SIGCONT."""
        return await resume(self.stage, node_id)

    async def power_loss(self, seeds: Mapping[NodeId, int], keep: Keep, exact: ExactLoss | None) -> Injury:
        """SIGKILL, then the loss of what the ledger does not cover."""
        return await power_loss(self.stage, dict(seeds), keep, exact)

    async def replace_disk(self, node_id: NodeId) -> Injury:
        """SIGKILL, then the loss of everything."""
        return await replace_disk(self.stage, node_id)

    @property
    def has_broken_links(self) -> bool:
        """Whether a proxy blocks anything."""
        links = self.stage.cluster.toxiproxy
        return links is not None and not links.is_open

    async def isolate(self, node_id: NodeId, clients: Clients) -> Injury:
        """Blocks its proxies."""
        return await isolate(self.stage, node_id, clients)

    async def cut(self, source: NodeId, target: NodeId) -> Injury:
        """Blocks a proxy in both directions."""
        return await cut(self.stage, source, target)

    async def lose_responses(self, source: NodeId, target: NodeId) -> Injury:
        """Blocks a proxy in one direction."""
        return await lose_responses(self.stage, source, target)

    async def heal_all(self) -> Recovery:
        """Opens every proxy."""
        return await heal_all(self.stage)

    async def heal_node(self, node_id: NodeId) -> Recovery:
        """Opens a node's proxies."""
        return await heal_node(self.stage, node_id)

    async def heal_link(self, source: NodeId, target: NodeId) -> Recovery:
        """Opens one proxy."""
        return await heal_link(self.stage, source, target)


@asynccontextmanager
async def open_scene(
    cluster: ProcessCluster, *, client: ClientLink, log: HarnessLog, lookout: Lookout, session_timeout_ms: int
) -> AsyncIterator[ProcessScene]:
    """Follows what the controller of a started cluster commits, and yields the scene that sees it."""
    watch = MetadataWatch(
        cluster.direct_addresses()[cluster.layout.controller_id],
        keepalive=keepalive_for(session_timeout_ms=session_timeout_ms),
        on_change=lookout.change,
    )
    stage = Stage(cluster=cluster, watch=watch, log=log, session_timeout_ms=session_timeout_ms)
    async with asyncio.TaskGroup() as tasks:
        following = tasks.create_task(watch.run())
        yield ProcessScene(stage=stage, client=client, lookout=lookout)
        following.cancel()
