"""The producers and consumers of a standing cluster: each is a separate process with its own history.

The supervisor assigns names, so that no two clients of a run claim the same records. It also completes histories: a
client that disappears leaves sends with an unknown outcome, and the supervisor records that, as a client does that
gives up.
"""

import fcntl
from pathlib import Path
from typing import Final

from laststand.emulator.client.history import complete_history
from laststand.emulator.core.errors import EmulatorError
from laststand.emulator.core.packed.layout import SUFFIX
from laststand.emulator.storage.line_file import line_files

HISTORY_FOLDER: Final = "history"
"""Folder of the clients' histories in a run directory."""

_NAME: Final = "client-"
"""Begins the names of clients, and of their histories. Brokers write those of clients of Kafka, and may go on with that
under the next supervisor."""


class ClientAtWorkError(EmulatorError):
    """A client of a supervisor that died still awaits answers; it gives up by itself within seconds."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"a client still writes {path}: wait until it has ended, or end it, and try again")
        self.path = path


class ClientRegister:
    """The connected clients, and those that were connected before."""

    def __init__(self, directory: Path) -> None:
        self._folder = directory / HISTORY_FOLDER
        self._folder.mkdir(exist_ok=True)
        self._count = len(list(self._folder.iterdir()))
        self._connected: dict[str, str] = {}

    @property
    def connected(self) -> tuple[str, ...]:
        """Clients at work, in words."""
        return tuple(f"{name} ({verb})" for name, verb in self._connected.items())

    def open(self, verb: str) -> str:
        """Returns the name of a new client."""
        name = f"{_NAME}{self._count}"
        self._count += 1
        self._connected[name] = verb
        return name

    def history_path(self, name: str) -> Path:
        """Returns the file of a client's history."""
        return self._folder / f"{name}{SUFFIX}"

    def close(self, name: str) -> None:
        """A client is done, and its history is whole."""
        del self._connected[name]

    def bury(self, name: str) -> int:
        """Completes the history of a client that disappeared; returns the number of sends with an unknown outcome."""
        del self._connected[name]
        return complete_history(self.history_path(name))


def complete_histories(directory: Path) -> int:
    """Completes the histories of clients whose supervisor died; returns the number of sends with an unknown outcome.

    Raises:
        ClientAtWorkError: a client still writes.
    """
    return sum(_complete_left(path) for path in line_files(directory / HISTORY_FOLDER, f"{_NAME}*"))


def _complete_left(path: Path) -> int:
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ClientAtWorkError(path) from None
        return complete_history(path)
