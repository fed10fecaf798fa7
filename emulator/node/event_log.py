"""Logs selected events as lines for people, in the words of ``Event.describe``.

INFO is a change of leader, ISR or broker state, WARNING is possible loss, DEBUG is traffic.
"""

import logging
from typing import Final

from laststand.emulator.core import events

_log: Final = logging.getLogger(__name__)

_INFO: Final = frozenset(
    {
        events.AuthenticationFailed,
        events.AuthorizationDenied,
        events.BecameFollower,
        events.BecameLeader,
        events.BrokerFenced,
        events.BrokerRegistered,
        events.BrokerStateChanged,
        events.BrokerUnfenced,
        events.LogTruncated,
        events.MessageIntercepted,
        events.OperationFailed,
        events.OrderReceived,
        events.PartitionChanged,
        events.PeerReachable,
        events.PeerUnreachable,
        events.RegistrationRefused,
        events.UncleanLeaderElected,
        events.UncleanRecoveryDropped,
        events.UncleanRecoveryStarted,
    }
)


def log_event(event: events.Event) -> None:
    """Logs an event at the appropriate level."""
    level = logging.DEBUG
    if type(event) in _INFO:
        level = logging.WARNING if _is_possible_loss(event) else logging.INFO
    if _log.isEnabledFor(level):
        _log.log(level, "%s cause_id=%s", event.describe(), event.cause_id)


def _is_possible_loss(event: events.Event) -> bool:
    match event:
        case events.LogTruncated(new_end_offset=new_end_offset, high_watermark=high_watermark):
            return new_end_offset < high_watermark
        case events.PartitionChanged(election=events.Election.UNCLEAN | events.Election.LAST_KNOWN_LEADER):
            return True
        case events.UncleanLeaderElected():
            return True
        case events.OperationFailed():
            return True
        case _:
            return False
