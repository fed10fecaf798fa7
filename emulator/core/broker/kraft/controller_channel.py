"""A broker's way to the active controller (Kafka's ``NodeToControllerChannelManager``, ``RaftControllerNodeProvider``).

Controllers are asked in turn. A controller that does not answer, is not active, or has an old epoch is skipped, and the
request is sent to the next one: after NOT_CONTROLLER or no answer, the request may or may not have taken effect.

The controller epoch that a broker has seen never falls. Otherwise the broker could believe a deposed controller that
refuses a request which its successor has carried out. Kafka's brokers know the epoch as observers of the
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
    """Sends requests to the active controller, as far as this broker knows it.

    Args:
        config: has the controllers' ids.
        in_flight: the broker's sent requests.

    Attributes:
        target: the controller that the next request goes to.
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
        """Returns whether an answer comes from the active controller; otherwise it is treated as no answer."""
        is_active = response.error is not ErrorCode.NOT_CONTROLLER and self.is_current(response.controller_epoch)
        if not is_active:
            self.pass_over(sender)
        return is_active

    def is_current(self, controller_epoch: LeaderEpoch) -> bool:
        """Returns whether a controller epoch is not lower than the highest seen, and remembers the higher one."""
        is_current = controller_epoch >= self.controller_epoch
        self.controller_epoch = max(self.controller_epoch, controller_epoch)
        return is_current

    def pass_over(self, node_id: NodeId) -> None:
        """Switches to the next controller, if this one is still the target."""
        if node_id == self.target:
            index = self._controller_ids.index(node_id) + 1
            self.target = self._controller_ids[index % len(self._controller_ids)]
