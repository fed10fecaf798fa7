"""Z8: the LeaderAndIsr from which a broker takes a role, by its received requests and its responses.

The highest controller epoch that a process knows is computed here, not read from the process: the highest one in the
requests that it accepted.
"""

from typing import Final, cast

from laststand.emulator.core import effects, events, inputs
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import (
    BrokerId,
    LeaderEpoch,
    NodeId,
    PartitionEpoch,
    RequestId,
    TopicId,
    TopicPartition,
)
from laststand.emulator.core.zookeeper import control_messages
from laststand.emulator.core.zookeeper.identifiers import ControllerEpoch
from laststand.emulator.simulator.nodes.nodes import BrokerNode
from laststand.emulator.simulator.oracle.alarm_log import AlarmLog

_ANSWERS: Final = (
    control_messages.LeaderAndIsrResponse,
    control_messages.UpdateMetadataResponse,
    control_messages.StopReplicaResponse,
)

_Process = tuple[BrokerId, int]
_Role = tuple[TopicPartition, LeaderEpoch, PartitionEpoch]


class RoleChecks:
    """Checks of one run."""

    def __init__(self, alarm_log: AlarmLog) -> None:
        self._alarm_log = alarm_log
        self._asked: dict[RequestId, control_messages.ControlRequest] = {}
        self._assigned: dict[
            tuple[_Process, _Role],
            list[tuple[control_messages.LeaderAndIsrRequest, control_messages.LeaderAndIsrPartition]],
        ] = {}
        self._known_epochs: dict[_Process, ControllerEpoch] = {}
        self._topics: set[tuple[NodeId, str, TopicId | None]] = set()
        self._replicas: dict[tuple[NodeId, TopicPartition, LeaderEpoch], tuple[BrokerId, ...]] = {}

    def asked(self, node: BrokerNode, received: inputs.RequestReceived) -> None:
        """A broker receives a request."""
        request = received.request
        if not isinstance(request, control_messages.ControlRequest):
            return
        self._asked[received.request_id] = request
        if isinstance(request, control_messages.LeaderAndIsrRequest):
            for wanted in request.partitions:
                role = (wanted.name, wanted.leader_epoch, wanted.partition_epoch)
                self._assigned.setdefault((_process(node), role), []).append((request, wanted))
                self._topics.add((node.node_id, wanted.name.topic, wanted.topic_id))
                if self._is_fresh(node, request):
                    self._replicas[node.node_id, wanted.name, wanted.leader_epoch] = wanted.replicas

    def answered(self, node: BrokerNode, answer: effects.SendResponse) -> None:
        """Notes a broker's answer. Once a broker has accepted a request, it knows the request's controller epoch."""
        request, response = self._asked.get(answer.request_id), cast(object, answer.response)
        if request is None or not isinstance(response, _ANSWERS):
            return
        if response.error is ErrorCode.NONE:
            known = self._known_epochs.get(_process(node), request.controller_epoch)
            self._known_epochs[_process(node)] = max(known, request.controller_epoch)

    def took_role(
        self, node: BrokerNode, name: TopicPartition, event: events.BecameLeader | events.BecameFollower
    ) -> None:
        """A broker leads or follows from now on: Z8."""
        role = (name, event.leader_epoch, event.partition_epoch)
        requests = self._assigned.get((_process(node), role), ())
        if not any(self._is_fresh(node, request) for request, _ in requests):
            which = "no request gave it" if not requests else f"only requests that were too old gave it: {requests}"
            self._alarm_log.report("Z8", name, f"broker {node.node_id} took a role, and {which}: {event.describe()}")

    def replicas_sent(
        self, node_id: NodeId, name: TopicPartition, leader_epoch: LeaderEpoch
    ) -> tuple[BrokerId, ...] | None:
        """Returns the replicas that a broker was sent with a leader epoch; ``None`` if it was sent none."""
        return self._replicas.get((node_id, name, leader_epoch))

    def has_sent_topic(self, node_id: NodeId, topic: str, topic_id: TopicId) -> bool:
        """Returns whether a broker was ever informed of a replica of a topic; old requests name no id."""
        return not self._topics.isdisjoint({(node_id, topic, topic_id), (node_id, topic, None)})

    def _is_fresh(self, node: BrokerNode, request: control_messages.LeaderAndIsrRequest) -> bool:
        own = None if node.broker is None else node.broker.broker_epoch
        is_for_this_life = request.broker_epoch is None or own is None or request.broker_epoch >= own
        return is_for_this_life and request.controller_epoch >= self._known_epochs.get(_process(node), 0)


def _process(node: BrokerNode) -> _Process:
    return node.broker_id, node.incarnation
