"""The cluster that steps act on: it can be observed, sent requests, and given faults and repairs.

This protocol has two implementations: real processes (``laststand.chaos.process.target``) and virtual time
(``laststand.chaos.simulated.target``). The meaning of steps, barriers and roles is defined above it, once for both.
``perform`` returns when the action is done and recorded. In the simulator nothing happens between two calls: time
passes only in ``wait`` and while a method needs a response.
"""

from collections.abc import Callable
from typing import Protocol

from laststand.chaos.play.barriers import Observation
from laststand.emulator.client.control import ClientCounts
from laststand.emulator.core import events, messages
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.types import BrokerId, CauseId, MetadataOffset, NodeId, Offset, TopicPartition
from laststand.emulator.plan import actions
from laststand.emulator.plan.channels import Channel


class Target(Protocol):
    """A cluster under a plan.

    Attributes:
        cause_id: of new events: the step that is being played.
    """

    cause_id: CauseId

    # --- What can be seen -------------------------------------------------------------------------------------------

    @property
    def image(self) -> MetadataImage:
        """The controller's committed state as far as it is known."""
        ...

    @property
    def counts(self) -> ClientCounts:
        """The progress of the clients so far."""
        ...

    def log_names(self, node_id: NodeId) -> frozenset[str]:
        """Returns the names of the directories in a node's log directory, such as ``orders-0``."""
        ...

    def log_end(self, node_id: NodeId, partition: TopicPartition) -> Offset:
        """Returns the end of a node's log of a partition, synced or not; 0 without a log."""
        ...

    def is_running(self, node_id: NodeId) -> bool:
        """Returns whether a node's process exists; a paused one does."""
        ...

    def is_awaited(self, node_id: NodeId) -> bool:
        """Returns whether a node is a standby controller that no step has started yet."""
        ...

    def together(self, node_id: NodeId) -> tuple[NodeId, ...]:
        """Returns all nodes of a node's process: in combined mode a broker and its controller."""
        ...

    def is_paused(self, node_id: NodeId) -> bool:
        """Returns whether a node's process stands still."""
        ...

    @property
    def has_broken_links(self) -> bool:
        """A link is to be healed, or a fault of messages is to be ended."""
        ...

    @property
    def now_ms(self) -> int:
        """The machine's monotonic time, or virtual time."""
        ...

    def intercepted(self, channel: Channel[NodeId]) -> int:
        """Returns the number of messages of a kind that faults have held, lost, duplicated or delayed so far."""
        ...

    async def committed_end(self) -> MetadataOffset:
        """Returns the present end of the committed records."""
        ...

    async def wait(self, see: Callable[[], Observation], *, timeout_s: float) -> Observation:
        """Waits until ``see`` says that a state is reached, looking whenever something may have changed.

        Raises:
            StepError: the state was not reached within ``timeout_s`` seconds, or the run failed meanwhile.
        """
        ...

    async def pause(self, *, duration_ms: int) -> None:
        """Waits for a time."""
        ...

    # --- What can be done -------------------------------------------------------------------------------------------

    async def perform(self, action: actions.Action) -> actions.Outcome:
        """Performs an action, and records the faults that it begins and ends.

        Requests to the controller are sent by ``laststand.chaos.play.administration`` instead.

        Raises:
            EmulatorError: the action could not be completed.
        """
        ...

    async def ask_controller(self, request: messages.Request) -> messages.Response:
        """Sends a request to the controller past all broken links and returns its answer.

        Raises:
            EmulatorError: there was no answer.
        """
        ...

    async def ask_broker(self, broker_id: BrokerId, request: messages.Request) -> messages.Response | None:
        """Sends a request to a broker, bypassing all broken links, and returns its answer; ``None`` without one."""
        ...

    def note(self, event: events.Event) -> None:
        """Writes an event of the harness."""
        ...
