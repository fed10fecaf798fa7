"""Authentication failures that were recorded already, so that a client that fails often does not fill the disk."""

from typing import Final

from laststand.emulator.core import events

_KNOWN_MAX: Final = 1000


class KnownFailures:
    """The recorded failures of one process, by host, mechanism and reason; beyond ``_KNOWN_MAX`` all count as known."""

    def __init__(self) -> None:
        """Starts without a failure."""
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
