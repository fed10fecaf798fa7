"""Inputs and effects that only ZooKeeper brokers have."""

from typing import TypeAlias

import msgspec

from laststand.emulator.core import effects, inputs, messages
from laststand.emulator.core.types import BrokerEpoch, BrokerId, CauseId, CorrelationId, RequestId
from laststand.emulator.core.zookeeper import control_messages, exchange


class ControlReceived(msgspec.Struct, frozen=True, kw_only=True):
    """A control request to this broker, from the current or a former controller."""

    cause_id: CauseId
    request_id: RequestId
    request: control_messages.ControlMessage


class BrokerRegisteredAs(msgspec.Struct, frozen=True, kw_only=True):
    """This broker has registered in ZooKeeper, and has this broker epoch."""

    cause_id: CauseId
    broker_epoch: BrokerEpoch


class TopicConfigChanged(msgspec.Struct, frozen=True, kw_only=True):
    """The node of a topic's configuration was written, made or deleted."""

    cause_id: CauseId
    topic: str


class ControllerReplied(msgspec.Struct, frozen=True, kw_only=True):
    """The broker that was asked as the controller has answered."""

    cause_id: CauseId
    correlation_id: CorrelationId
    response: messages.AlterPartitionResponse | control_messages.ControlledShutdownResponse


class ControllerUnreachable(msgspec.Struct, frozen=True, kw_only=True):
    """The broker that was asked as the controller did not answer; it may have performed the request."""

    cause_id: CauseId
    correlation_id: CorrelationId


ZooKeeperBrokerInput: TypeAlias = (
    inputs.Started
    | inputs.LogsLoaded
    | inputs.LogRecovered
    | inputs.RecordsRead
    | inputs.SegmentsDeleted
    | inputs.RequestReceived
    | inputs.ResponseReceived
    | inputs.RequestFailed
    | inputs.TimerFired
    | inputs.ShutdownRequested
    | ControlReceived
    | BrokerRegisteredAs
    | TopicConfigChanged
    | ControllerReplied
    | ControllerUnreachable
    | exchange.ZooKeeperAnswered
    | exchange.ZooKeeperConnectionLost
    | exchange.ZooKeeperReconnected
    | exchange.SessionExpired
)


class AnswerControl(msgspec.Struct, frozen=True, kw_only=True):
    """Answers a ``ControlReceived``."""

    request_id: RequestId
    response: control_messages.ControlAnswer


class AskController(msgspec.Struct, frozen=True, kw_only=True):
    """Asks the controller that metadata names; ends in ``ControllerReplied`` or ``ControllerUnreachable``."""

    destination: BrokerId
    correlation_id: CorrelationId
    request: messages.AlterPartitionRequest | control_messages.ControlledShutdownRequest
    timeout_ms: int


class LogsAreOpen(msgspec.Struct, frozen=True):
    """The broker may register now: its logs are open, and roles can be taken."""


ZooKeeperBrokerEffect: TypeAlias = (
    effects.BrokerEffect
    | AnswerControl
    | AskController
    | LogsAreOpen
    | exchange.ZooKeeperRequest
    | exchange.CloseSession
)
