"""Effects and inputs between a node's core and the driver that keeps its ZooKeeper session.

A node sends ``ZooKeeperRequest`` and gets either ``ZooKeeperAnswered``, with one answer per step, or
``ZooKeeperConnectionLost``: then it is unknown which steps were executed. Watches are set by the steps that read; a
watch's event arrives before the answer to any later step. After ``ZooKeeperConnectionLost`` the driver sets every watch
of the session again by reading, and reports changes that it missed. Only the server reports ``SessionExpired``, so a
node may believe itself alive for any length of time; ``OpenSession`` asks for the next session, once the core has
dropped the old one.
"""

from typing import TypeAlias

import msgspec

from laststand.emulator.core.types import CauseId, CorrelationId
from laststand.emulator.core.zookeeper import operations
from laststand.emulator.core.zookeeper.identifiers import SessionId


class ZooKeeperRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Sends steps, pipelined and in order."""

    correlation_id: CorrelationId
    steps: operations.Steps


class OpenSession(msgspec.Struct, frozen=True):
    """Opens a session, the first one or the next after an expiry."""


class CloseSession(msgspec.Struct, frozen=True):
    """Ends the session in order; its ephemeral nodes vanish at once."""


ZooKeeperEffect: TypeAlias = ZooKeeperRequest | OpenSession | CloseSession


class ZooKeeperAnswered(msgspec.Struct, frozen=True, kw_only=True):
    """All steps of a request were answered."""

    cause_id: CauseId
    correlation_id: CorrelationId
    answers: operations.Answers


class ZooKeeperConnectionLost(msgspec.Struct, frozen=True):
    """No request under way will be answered; each step may have been executed. The session may go on."""

    cause_id: CauseId


class ZooKeeperReconnected(msgspec.Struct, frozen=True):
    """The server is reached again within the same session."""

    cause_id: CauseId


class SessionEstablished(msgspec.Struct, frozen=True, kw_only=True):
    """A new session."""

    cause_id: CauseId
    session_id: SessionId


class SessionExpired(msgspec.Struct, frozen=True):
    """The server has ended the session; requests under way were not executed since."""

    cause_id: CauseId


class WatchFired(msgspec.Struct, frozen=True, kw_only=True):
    """A watch fired."""

    cause_id: CauseId
    event: operations.WatchEvent


ZooKeeperInput: TypeAlias = (
    ZooKeeperAnswered
    | ZooKeeperConnectionLost
    | ZooKeeperReconnected
    | SessionEstablished
    | SessionExpired
    | WatchFired
)
