"""Failures to prove who somebody is that were written down already: strangers may fail often, and fill no disk."""

from typing import Final

from laststand.emulator.core import events

_KNOWN_MAX: Final = 1000


class KnownFailures:
    """Those of one process, by host, mechanism and reason; with ``_KNOWN_MAX`` of them it counts all as known."""

    def __init__(self) -> None:
        """Knows of none."""
        self._known: set[tuple[str, str, str]] = set()

    def is_known(self, event: events.Event) -> bool:
        """Returns whether an event is such a failure, and not the first of its kind."""
        if not isinstance(event, events.AuthenticationFailed):
            return False
        failure = (event.address.rpartition(":")[0], event.mechanism, event.reason)
        if failure in self._known or len(self._known) >= _KNOWN_MAX:
            return True
        self._known.add(failure)
        return False
