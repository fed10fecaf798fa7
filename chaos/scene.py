"""What the steps of a scenario act on: a cluster that can be watched, asked, broken and mended.

There is one such seam and two scenes behind it: real processes (``process_scene``) and the simulator
(``simulated_scene``). What a step means, what a barrier waits for and who has a role is decided above it, once; a scene
only does things and says how it saw them take effect. Methods that change the cluster return when the change is done.
In the simulator nothing happens between two calls, as time passes only in ``wait`` and where a method needs an answer.
"""

from collections.abc import Callable, Mapping
from typing import Protocol

from chaos.barriers import Sight
from chaos.faults.injury import Injury, Recovery
from chaos.scenario import Clients
from emulator.client.control import Progress
from emulator.core.events import Event
from emulator.core.image import MetadataImage
from emulator.core.messages import Request, Response
from emulator.core.types import CauseId, MetadataOffset, NodeId, Offset, TopicPartition
from emulator.storage.power_loss_plan import ExactLoss, Keep


class Scene(Protocol):
    """A cluster under a plan.

    Attributes:
        cause_id: of what happens now: the step that is being played.
    """

    cause_id: CauseId

    # --- Watching ---------------------------------------------------------------------------------------------------

    @property
    def image(self) -> MetadataImage:
        """The controller's committed state as far as it is known now."""
        ...

    @property
    def progress(self) -> Progress:
        """What the clients have achieved so far."""
        ...

    def log_names(self, node_id: NodeId) -> frozenset[str]:
        """Returns the names of the directories in a node's log directory, such as ``orders-0``."""
        ...

    def log_end(self, node_id: NodeId, partition: TopicPartition) -> Offset:
        """Returns where a node's log of a partition ends, synced or not; 0 where there is none."""
        ...

    async def committed_end(self) -> MetadataOffset:
        """Returns where the committed records end now."""
        ...

    async def wait(self, see: Callable[[], Sight], *, timeout_s: float) -> Sight:
        """Waits until ``see`` says that a state is reached, looking whenever something may have changed.

        Raises:
            Missed: it was not within ``timeout_s`` seconds, or the run failed meanwhile.
        """
        ...

    def note(self, event: Event) -> None:
        """Writes an event of the harness."""
        ...

    # --- Clients ----------------------------------------------------------------------------------------------------

    def produce(self, producer: str, partition: TopicPartition, records: int) -> None:
        """Has a producer send a batch.

        Raises:
            EmulatorError: there are no clients any more.
        """
        ...

    # --- Administration ---------------------------------------------------------------------------------------------

    async def ask_controller(self, request: Request) -> Response:
        """Sends a request to the controller past all broken links and returns its answer.

        Raises:
            EmulatorError: there was no answer.
        """
        ...

    # --- Processes --------------------------------------------------------------------------------------------------

    def is_running(self, node_id: NodeId) -> bool:
        """Whether a node's process is there; a paused one is."""
        ...

    def is_paused(self, node_id: NodeId) -> bool:
        """Whether a node's process stands still."""
        ...

    async def kill(self, node_id: NodeId) -> Injury:
        """Ends a process at once; what it wrote stays."""
        ...

    async def stop(self, node_id: NodeId) -> Injury:
        """Ends a process in order."""
        ...

    async def start(self, node_id: NodeId) -> Recovery:
        """Starts a node that is down."""
        ...

    async def pause(self, node_id: NodeId) -> Injury:
        """Lets a process stand still."""
        ...

    async def resume(self, node_id: NodeId) -> Recovery:
        """Lets a paused process go on."""
        ...

    async def power_loss(self, seeds: Mapping[NodeId, int], keep: Keep, exact: ExactLoss | None) -> Injury:
        """Ends nodes at once and takes what they had not synced.

        Args:
            seeds: of each node's random choices.
            keep: shape of the loss.
            exact: leaves nothing to chance.
        """
        ...

    async def replace_disk(self, node_id: NodeId) -> Injury:
        """Ends a node at once, and gives it an empty disk."""
        ...

    # --- Links ------------------------------------------------------------------------------------------------------

    @property
    def has_broken_links(self) -> bool:
        """Whether there is any link to heal."""
        ...

    async def isolate(self, node_id: NodeId, clients: Clients) -> Injury:
        """Cuts every link to and from a node."""
        ...

    async def cut(self, source: NodeId, target: NodeId) -> Injury:
        """Cuts what one node dials to another."""
        ...

    async def lose_responses(self, source: NodeId, target: NodeId) -> Injury:
        """Loses what comes back on what one node dials to another."""
        ...

    async def heal_all(self) -> Recovery:
        """Mends every link."""
        ...

    async def heal_node(self, node_id: NodeId) -> Recovery:
        """Mends every link to and from a node."""
        ...

    async def heal_link(self, source: NodeId, target: NodeId) -> Recovery:
        """Mends what one node dials to another."""
        ...
