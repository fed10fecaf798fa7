"""The protocol between commands and the supervisor of a standing cluster: JSON lines over a Unix socket.

A connection carries one command. ``TakeDown`` and ``StopCluster`` are answered by any number of ``DownPhase`` and one
``TakenDown``; ``OpenClient`` keeps the connection open until ``CloseClient``, or until one of the two processes is
gone; every other command has one answer. ``Refused`` can answer any command: nothing was done, and the reason says what
to do instead.
"""

from typing import Final, TypeAlias

import msgspec

from laststand.chaos.scenario.scenario import Ending
from laststand.chaos.standing.status import StatusReport
from laststand.emulator.core import events
from laststand.emulator.core.types import BrokerId, TopicPartition
from laststand.emulator.plan.actions import Action, ActionTemplate, Administration, Outcome
from laststand.emulator.storage.replica_view import ReplicaView


class _Line(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag=True):
    """Base of all messages."""


class GetStatus(_Line, frozen=True, kw_only=True):
    """Ask for the cluster's status."""


class PlayStep(_Line, frozen=True, kw_only=True):
    """Play one step, written as in a scenario file: ``until: {partition: orders-0, leader: 1}``."""

    step: str


class Perform(_Line, frozen=True, kw_only=True):
    """Perform an action, whose nodes may be roles."""

    action: ActionTemplate


class AnnounceOrder(_Line, frozen=True, kw_only=True):
    """Record an order that an administrator is about to send."""

    given: events.OrderGiven


class RecordRequest(_Line, frozen=True, kw_only=True):
    """Record an administrator's request to the controller, and its response.

    Attributes:
        actions: the requested actions; a topic whose replicas the controller chose has none.
        seen: the answer in words.
    """

    actions: tuple[Administration, ...]
    seen: str


class Recorded(_Line, frozen=True, kw_only=True):
    """The answer to ``AnnounceOrder`` and to ``RecordRequest``."""


class AskController(_Line, frozen=True, kw_only=True):
    """Execute an administrator's request that, in a cluster with ZooKeeper, is not sent to a single node.

    Attributes:
        api: Kafka's name of the request.
        request: the encoded request.
    """

    api: str
    request: bytes


class ControllerAnswered(_Line, frozen=True, kw_only=True):
    """The answer to ``AskController``, as on the wire."""

    response: bytes


class ControllerRefused(_Line, frozen=True, kw_only=True):
    """The request got no answer; fields as in ``AdminError``."""

    api: str
    error: str
    subject: str
    reason: str


class LookAtReplica(_Line, frozen=True, kw_only=True):
    """Read a broker's files of a partition."""

    broker_id: BrokerId
    partition: TopicPartition


class ReplicaSeen(_Line, frozen=True, kw_only=True):
    """The answer to ``LookAtReplica``; ``None`` if the broker has no log."""

    view: ReplicaView | None


class OpenClient(_Line, frozen=True, kw_only=True):
    """Register a producer or consumer; ``verb`` is for people."""

    verb: str


class CloseClient(_Line, frozen=True, kw_only=True):
    """The client of this connection is done, and its history is whole."""


class TakeDown(_Line, frozen=True, kw_only=True):
    """Stop the cluster in order, after healing all faults (``restore``) or without (``as_is``)."""

    ending: Ending


class StopCluster(_Line, frozen=True, kw_only=True):
    """End all processes in order, and leave everything so that the cluster can be started again."""


class Refused(_Line, frozen=True, kw_only=True):
    """Nothing was done."""

    reason: str


class StepPlayed(_Line, frozen=True, kw_only=True):
    """A step was played.

    Attributes:
        step: with nodes and seeds found.
        outcome: the observed effect.
        performed: the action; ``None`` for a barrier.
    """

    step: str
    outcome: Outcome
    performed: Action | None


class StepFailed(_Line, frozen=True, kw_only=True):
    """A step was begun and did not complete."""

    reason: str


class Status(_Line, frozen=True, kw_only=True):
    """The answer to ``GetStatus``."""

    report: StatusReport


class ClientOpened(_Line, frozen=True, kw_only=True):
    """A client may work.

    Attributes:
        name: name of the client, in the history and in the identity of its records.
        history_path: file to create.
        addresses: the addresses at which it reaches each node, maybe those of proxies.
        brokers: all brokers.
        session_timeout_ms: of the cluster.
    """

    name: str
    history_path: str
    addresses: dict[int, str]
    brokers: tuple[BrokerId, ...]
    session_timeout_ms: int


class ClientDismissed(_Line, frozen=True, kw_only=True):
    """The cluster is about to end: await answers, then close."""


class DownPhase(_Line, frozen=True, kw_only=True):
    """The present phase of ``down``."""

    text: str


class TakenDown(_Line, frozen=True, kw_only=True):
    """Nothing runs any more. ``problem`` is the reason why the verdict will be ``unknown``."""

    problem: str | None


Command: TypeAlias = (
    GetStatus
    | PlayStep
    | Perform
    | AnnounceOrder
    | RecordRequest
    | AskController
    | LookAtReplica
    | OpenClient
    | CloseClient
    | TakeDown
    | StopCluster
)
Answer: TypeAlias = (
    Refused
    | StepPlayed
    | StepFailed
    | Recorded
    | ControllerAnswered
    | ControllerRefused
    | ReplicaSeen
    | Status
    | ClientOpened
    | ClientDismissed
    | DownPhase
    | TakenDown
)

_ENCODER: Final = msgspec.json.Encoder()
_COMMANDS: Final[msgspec.json.Decoder[Command]] = msgspec.json.Decoder(Command)
_ANSWERS: Final[msgspec.json.Decoder[Answer]] = msgspec.json.Decoder(Answer)

LINE_LENGTH_MAX: Final = 1 << 26
"""Longest line; a status of a hundred thousand partitions fits."""


def encode_line(message: Command | Answer) -> bytes:
    """Returns a message as a line."""
    return _ENCODER.encode(message) + b"\n"


def decode_command(line: bytes) -> Command:
    """Inverse of ``encode_line`` for commands.

    Raises:
        msgspec.DecodeError: the line is no command.
    """
    return _COMMANDS.decode(line)


def decode_answer(line: bytes) -> Answer:
    """Inverse of ``encode_line`` for answers.

    Raises:
        msgspec.DecodeError: the line is no answer.
    """
    return _ANSWERS.decode(line)
