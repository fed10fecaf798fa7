"""Effects of the controller other than messages: on its log, the metadata streams, random draws, and its own end."""

from collections.abc import Callable

from laststand.emulator.core import effects, events, inputs
from laststand.emulator.core.errors import InvariantError
from laststand.emulator.core.types import CauseId, MessageFate
from laststand.emulator.plan.channels import CONTROLLER_SYNC
from laststand.emulator.simulator.network.network import Network
from laststand.emulator.simulator.network.streams import MetadataStreams
from laststand.emulator.simulator.nodes.event_queue import EventQueue
from laststand.emulator.simulator.nodes.nodes import ControllerNode


class ControllerEffects:
    """Executes the effects of the controller.

    Args:
        node: the controller.
        queue: virtual time.
        network: may hold the completions of its fsyncs.
        streams: of metadata.
        step: hands an input to the controller.
        end: ends the controller's process.
    """

    def __init__(
        self,
        node: ControllerNode,
        queue: EventQueue,
        network: Network,
        streams: MetadataStreams,
        *,
        step: Callable[[ControllerNode, inputs.ControllerInput], None],
        end: Callable[[ControllerNode, events.IncarnationEnd], None],
    ) -> None:
        self._node = node
        self._queue = queue
        self._network = network
        self._streams = streams
        self._step = step
        self._end = end

    def execute(self, effect: effects.Effect) -> None:
        """Executes one effect.

        Raises:
            InvariantError: the controller has no such effect.
        """
        match effect:
            case effects.AppendMetadata():
                self._append(effect)
            case effects.PublishMetadata(cause_id=cause_id):
                self._streams.publish(self._node, cause_id)
            case effects.DrawNumber():
                self._queue.after(0, self.deliver_draw)
            case effects.StopNode():
                self._end(self._node, events.IncarnationEnd.STOPPED)
            case _:
                raise InvariantError(f"the controller has no effect {effect}")

    def deliver_draw(self) -> None:
        """Delivers to the controller the number that picks the leaders of unclean elections."""
        self._step(self._node, inputs.NumberDrawn(cause_id=CauseId("draw"), number=self._node.draw))

    def _append(self, effect: effects.AppendMetadata) -> None:
        node = self._node
        length, incarnation = node.append(effect), node.incarnation

        def sync() -> None:
            if node.incarnation == incarnation and node.core is not None:
                node.sync_to(length)
                self._step(node, inputs.MetadataCommitted(cause_id=CauseId("sync"), end_offset=effect.batch.end_offset))

        held = self._network.held.get(CONTROLLER_SYNC)
        if held is None:
            self._queue.after(0, sync)
        else:
            self._network.intercept(CONTROLLER_SYNC, MessageFate.HELD)
            held.append(sync)
