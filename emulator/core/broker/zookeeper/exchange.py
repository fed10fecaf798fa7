"""What passes between a ZooKeeper broker and what surrounds it, beside what every broker knows."""

from typing import TypeAlias

import msgspec

from laststand.emulator.core.effects import BrokerEffect
from laststand.emulator.core.inputs import (
    LogRecovered,
    LogsLoaded,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
    SegmentsDeleted,
    ShutdownRequested,
    Started,
    TimerFired,
)
from laststand.emulator.core.messages import AlterPartitionRequest, AlterPartitionResponse
from laststand.emulator.core.types import BrokerEpoch, BrokerId, CauseId, CorrelationId, RequestId
from laststand.emulator.core.zookeeper.control_messages import (
    ControlAnswer,
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    ControlMessage,
)
from laststand.emulator.core.zookeeper.exchange import (
    CloseSession,
    SessionExpired,
    ZooKeeperAnswered,
    ZooKeeperConnectionLost,
    ZooKeeperReconnected,
    ZooKeeperRequest,
)


class ControlReceived(msgspec.Struct, frozen=True, kw_only=True):
    """The controller, or one that was replaced, tells this broker something."""

    cause_id: CauseId
    request_id: RequestId
    request: ControlMessage


class BrokerRegisteredAs(msgspec.Struct, frozen=True, kw_only=True):
    """This broker has a node in ZooKeeper, and this epoch."""

    cause_id: CauseId
    broker_epoch: BrokerEpoch


class TopicConfigChanged(msgspec.Struct, frozen=True, kw_only=True):
    """The node of a topic's configuration was written, made or deleted."""

    cause_id: CauseId
    topic: str


class ControllerReplied(msgspec.Struct, frozen=True, kw_only=True):
    """Whoever was asked as the controller answered."""

    cause_id: CauseId
    correlation_id: CorrelationId
    response: AlterPartitionResponse | ControlledShutdownResponse


class ControllerUnreachable(msgspec.Struct, frozen=True, kw_only=True):
    """Whoever was asked as the controller did not answer; it may have acted."""

    cause_id: CauseId
    correlation_id: CorrelationId


ZooKeeperBrokerInput: TypeAlias = (
    Started
    | LogsLoaded
    | LogRecovered
    | SegmentsDeleted
    | RequestReceived
    | ResponseReceived
    | RequestFailed
    | TimerFired
    | ShutdownRequested
    | ControlReceived
    | BrokerRegisteredAs
    | TopicConfigChanged
    | ControllerReplied
    | ControllerUnreachable
    | ZooKeeperAnswered
    | ZooKeeperConnectionLost
    | ZooKeeperReconnected
    | SessionExpired
)


class AnswerControl(msgspec.Struct, frozen=True, kw_only=True):
    """Answers a ``ControlReceived``."""

    request_id: RequestId
    response: ControlAnswer


class AskController(msgspec.Struct, frozen=True, kw_only=True):
    """Asks the controller that metadata names; ends in ``ControllerReplied`` or ``ControllerUnreachable``."""

    destination: BrokerId
    correlation_id: CorrelationId
    request: AlterPartitionRequest | ControlledShutdownRequest
    timeout_ms: int


class LogsAreOpen(msgspec.Struct, frozen=True):
    """The broker may register now: its logs are open, and roles can be taken."""


ZooKeeperBrokerEffect: TypeAlias = (
    BrokerEffect | AnswerControl | AskController | LogsAreOpen | ZooKeeperRequest | CloseSession
)
