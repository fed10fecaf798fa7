"""The controller's queue of events, handled one at a time (Kafka's ``ControllerEvent``).

Watches only queue an event; its handler reads the present state, so several changes may be one.
"""

from typing import TypeAlias

import msgspec

from laststand.emulator.core.types import BrokerId, RequestId, TopicPartition
from laststand.emulator.core.zookeeper import control_messages
from laststand.emulator.core.zookeeper.controller import exchange


class RegisterAndElect(msgspec.Struct, frozen=True):
    """A new session: register the broker, then look for a controller (``RegisterBrokerAndReelect``)."""


class ControllerGone(msgspec.Struct, frozen=True):
    """``/controller`` was deleted (``Reelect``)."""


class ControllerChanged(msgspec.Struct, frozen=True):
    """``/controller`` was made, or written."""


class BrokersChanged(msgspec.Struct, frozen=True):
    """A broker's node was created or deleted."""


class TopicsChanged(msgspec.Struct, frozen=True):
    """A topic's node was created or deleted."""


class TopicChanged(msgspec.Struct, frozen=True):
    """A topic's node was written."""

    topic: str


class DeletionsChanged(msgspec.Struct, frozen=True):
    """A deletion of a topic was requested."""


class IsrChangesNotified(msgspec.Struct, frozen=True):
    """Leaders wrote their ISR themselves."""


class LogDirEventsNotified(msgspec.Struct, frozen=True):
    """A log directory failed."""


class ReassignedIsrChanged(msgspec.Struct, frozen=True):
    """The state node of a partition that is being reassigned was written (below IBP 2.7-IV2)."""

    name: TopicPartition


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A broker or an administrator sent the controller a request."""

    request_id: RequestId
    request: exchange.ControllerRequest


class RolesAnswered(msgspec.Struct, frozen=True, kw_only=True):
    """A broker answered LeaderAndIsr."""

    broker_id: BrokerId
    response: control_messages.LeaderAndIsrResponse


class StopAnswered(msgspec.Struct, frozen=True, kw_only=True):
    """A broker answered StopReplica."""

    broker_id: BrokerId
    request: control_messages.StopReplicaRequest
    response: control_messages.StopReplicaResponse


class TopicConfigured(msgspec.Struct, frozen=True):
    """A topic's configuration changed."""

    topic: str


class BalanceDue(msgspec.Struct, frozen=True):
    """It is time to check for leaderships that are not at preferred replicas."""


Event: TypeAlias = (
    RegisterAndElect
    | ControllerGone
    | ControllerChanged
    | BrokersChanged
    | TopicsChanged
    | TopicChanged
    | DeletionsChanged
    | IsrChangesNotified
    | LogDirEventsNotified
    | ReassignedIsrChanged
    | Asked
    | RolesAnswered
    | StopAnswered
    | TopicConfigured
    | BalanceDue
)
