"""The supervisor's socket in the run directory.

A path of a unix socket has room for 107 bytes, and run directories may be deeper. So the socket is named through the
directory's file descriptor, which makes any path short.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from laststand.chaos.standing.order import SOCKET_FILE


@contextmanager
def short_path(directory: Path) -> Iterator[str]:
    """Yields a path of the directory's socket that is short for as long as the block lasts.

    Raises:
        FileNotFoundError: there is no such directory.
    """
    descriptor = os.open(directory, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}/{SOCKET_FILE}"
    finally:
        os.close(descriptor)
