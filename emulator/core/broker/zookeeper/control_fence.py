"""Refuses control requests that are too old (KIP-380; Kafka's ``KafkaApis`` and ``ReplicaManager``).

A request to a former incarnation of this broker, or from a controller that was replaced, may carry outdated state. Any
request with a newer controller epoch makes the broker adopt that epoch.
"""

from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import BrokerEpoch
from laststand.emulator.core.zookeeper import control_messages
from laststand.emulator.core.zookeeper.identifiers import ControllerEpoch
from laststand.emulator.core.zookeeper.rules import ZooKeeperRules


class ControlFence:
    """The broker epoch and the controller epoch that this broker compares requests with.

    Attributes:
        broker_epoch: of its own registration; ``None`` before any.
        controller_epoch: the highest of any request. Invariant: it never goes back.
    """

    def __init__(self, rules: ZooKeeperRules) -> None:
        self._rules = rules
        self.broker_epoch: BrokerEpoch | None = None
        self.controller_epoch = ControllerEpoch(0)

    def check(self, request: control_messages.ControlRequest) -> ErrorCode:
        """Returns the error that refuses a request, or NONE; adopts the request's controller epoch.

        A greater broker epoch passes: the controller may hear of a registration before the broker does.
        """
        error = self.error_of(request)
        if error is ErrorCode.NONE:
            self.controller_epoch = request.controller_epoch
        return error

    def error_of(self, request: control_messages.ControlRequest) -> ErrorCode:
        """Returns the error that ``check`` would return, and adopts nothing."""
        if self._is_for_former_incarnation(request) and self._rules.control_broker_epoch_check:
            return ErrorCode.STALE_BROKER_EPOCH
        if request.controller_epoch < self.controller_epoch:
            return ErrorCode.STALE_CONTROLLER_EPOCH
        return ErrorCode.NONE

    def _is_for_former_incarnation(self, request: control_messages.ControlRequest) -> bool:
        if request.broker_epoch is None or self.broker_epoch is None:
            return False
        return request.broker_epoch < self.broker_epoch
