"""A broker's way to the active controller (Kafka's ``NodeToControllerChannelManager``, ``RaftControllerNodeProvider``).

Controllers are asked in turn. One that does not answer, is not active, or is of an epoch that is over, is passed over,
and what was asked is asked again of the next one: NOT_CONTROLLER and silence leave open whether it took effect.

The controller epoch that a broker has seen never falls. Without that a controller that was deposed and does not know it
could refuse what its successor has carried out, and be believed. Kafka's brokers know the epoch as observers of the
quorum, and close the connection to the controller before; here messages may be held and delivered late, so that answers
name their epoch. A broker forgets it when its process ends: until it is registered, which takes a commit, it must not
act on metadata (``roles_after_registration``).
"""

import msgspec

from laststand.emulator.core.broker.replicas.config import BrokerConfig
from laststand.emulator.core.broker.replicas.in_flight_requests import InFlightRequests
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.messages import ControllerRequest, ControllerResponse
from laststand.emulator.core.types import LeaderEpoch, NodeId


class ControllerChannel:
    """The controller that is asked now.

    Args:
        config: names the controllers.
        in_flight: takes the requests.

    Attributes:
        target: who is asked next.
        controller_epoch: the highest that any controller has answered with.
    """

    def __init__(self, config: BrokerConfig, in_flight: InFlightRequests) -> None:
        self.target = config.controller_ids[0]
        self.controller_epoch = LeaderEpoch(0)
        self._controller_ids = config.controller_ids
        self._in_flight = in_flight

    def send(self, turn: Turn, request: ControllerRequest, *, timeout_ms: int) -> None:
        """Asks the controller."""
        if self.controller_epoch:
            request = msgspec.structs.replace(request, controller_epoch=self.controller_epoch)
        self._in_flight.send(turn, self.target, request, timeout_ms=timeout_ms)

    def believes(self, sender: NodeId, response: ControllerResponse) -> bool:
        """Returns whether an answer counts; otherwise it is as if none had come."""
        is_active = response.error is not ErrorCode.NOT_CONTROLLER and self.is_current(response.controller_epoch)
        if not is_active:
            self.pass_over(sender)
        return is_active

    def is_current(self, controller_epoch: LeaderEpoch) -> bool:
        """Returns whether a controller of this epoch may be believed, and remembers the epoch."""
        is_current = controller_epoch >= self.controller_epoch
        self.controller_epoch = max(self.controller_epoch, controller_epoch)
        return is_current

    def pass_over(self, node_id: NodeId) -> None:
        """Asks the next controller from now on, unless another than this one is asked already."""
        if node_id == self.target:
            index = self._controller_ids.index(node_id) + 1
            self.target = self._controller_ids[index % len(self._controller_ids)]
