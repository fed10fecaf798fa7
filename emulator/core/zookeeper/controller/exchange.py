"""Inputs and effects between a process's controller and the session's driver, brokers, and its own broker."""

from typing import TypeAlias

import msgspec

from laststand.emulator.core import admin_messages, messages
from laststand.emulator.core.types import BrokerEpoch, BrokerId, CauseId, CorrelationId, RequestId
from laststand.emulator.core.zookeeper import control_messages, exchange

ControllerRequest: TypeAlias = (
    messages.AlterPartitionRequest
    | control_messages.ControlledShutdownRequest
    | admin_messages.ElectLeadersRequest
    | admin_messages.AlterPartitionReassignmentsRequest
)
ControllerResponse: TypeAlias = (
    messages.AlterPartitionResponse
    | control_messages.ControlledShutdownResponse
    | admin_messages.ElectLeadersResponse
    | admin_messages.AlterPartitionReassignmentsResponse
)


class ControllerAsked(msgspec.Struct, frozen=True, kw_only=True):
    """A request of a broker or an administrator to the controller; most are answered once."""

    cause_id: CauseId
    request_id: RequestId
    request: ControllerRequest


class ControlAnswered(msgspec.Struct, frozen=True, kw_only=True):
    """A broker answered a control request."""

    cause_id: CauseId
    correlation_id: CorrelationId
    response: control_messages.ControlAnswer


class ControlFailed(msgspec.Struct, frozen=True, kw_only=True):
    """A control request got no answer; it may have been executed."""

    cause_id: CauseId
    correlation_id: CorrelationId


class TimeCame(msgspec.Struct, frozen=True):
    """The time that ``next_deadline_ms`` returned has come."""

    cause_id: CauseId


ControllerInput: TypeAlias = exchange.ZooKeeperInput | ControllerAsked | ControlAnswered | ControlFailed | TimeCame


class SendControlRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Asks a broker; ends in ``ControlAnswered`` or ``ControlFailed``."""

    correlation_id: CorrelationId
    broker_id: BrokerId
    request: control_messages.ControlMessage


class AnswerController(msgspec.Struct, frozen=True, kw_only=True):
    """Answers a ``ControllerAsked``."""

    request_id: RequestId
    response: ControllerResponse


class Registered(msgspec.Struct, frozen=True):
    """This process's broker is registered, with this epoch."""

    broker_epoch: BrokerEpoch


class RegistrationRefused(msgspec.Struct, frozen=True):
    """Another process has registered with the broker's id: this process has to end."""


ControllerEffect: TypeAlias = (
    exchange.ZooKeeperEffect | SendControlRequest | AnswerController | Registered | RegistrationRefused
)
