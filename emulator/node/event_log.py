"""What a node says to people: selected events as log lines, in the words of ``Event.describe``.

INFO is a change of leader, ISR or broker state, WARNING is possible loss, DEBUG is traffic.
"""

import logging
from typing import Final

from laststand.emulator.core.events import (
    BecameFollower,
    BecameLeader,
    BrokerFenced,
    BrokerRegistered,
    BrokerStateChanged,
    BrokerUnfenced,
    Election,
    Event,
    LogTruncated,
    MessageIntercepted,
    OrderReceived,
    PartitionChanged,
    PeerReachable,
    PeerUnreachable,
    UncleanLeaderElected,
    UncleanRecoveryDropped,
    UncleanRecoveryStarted,
)

_log: Final = logging.getLogger(__name__)

_INFO: Final = frozenset(
    {
        BecameFollower,
        BecameLeader,
        BrokerFenced,
        BrokerRegistered,
        BrokerStateChanged,
        BrokerUnfenced,
        LogTruncated,
        MessageIntercepted,
        OrderReceived,
        PartitionChanged,
        PeerReachable,
        PeerUnreachable,
        UncleanLeaderElected,
        UncleanRecoveryDropped,
        UncleanRecoveryStarted,
    }
)


def log_event(event: Event) -> None:
    """Logs an event at the level that it deserves."""
    level = logging.DEBUG
    if type(event) in _INFO:
        level = logging.WARNING if _is_possible_loss(event) else logging.INFO
    if _log.isEnabledFor(level):
        _log.log(level, "%s cause_id=%s", event.describe(), event.cause_id)


def _is_possible_loss(event: Event) -> bool:
    match event:
        case LogTruncated(new_end_offset=new_end_offset, high_watermark=high_watermark):
            return new_end_offset < high_watermark
        case PartitionChanged(election=Election.UNCLEAN | Election.LAST_KNOWN_LEADER):
            return True
        case UncleanLeaderElected():
            return True
        case _:
            return False
