"""The engine's socket behind one of our own, which can be closed: an engine that goes away in mid-run."""

import contextlib
import socket
import threading
from pathlib import Path
from typing import Final

_ENGINE: Final = "/var/run/docker.sock"
_BYTES: Final = 1 << 16


class EngineRelay:
    """Passes everything on, until it is cut.

    Args:
        directory: for the socket.
    """

    def __init__(self, directory: Path) -> None:
        self._path = directory / "engine.sock"
        self._open: list[socket.socket] = []
        self._lock = threading.Lock()
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(self._path))
        self._server.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def host(self) -> str:
        """As ``DOCKER_HOST`` names it."""
        return f"unix://{self._path}"

    def cut(self) -> None:
        """Ends every connection, and takes no more."""
        with self._lock:
            for each in (self._server, *self._open):
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
                each.close()
            self._path.unlink(missing_ok=True)

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._server.accept()
            except OSError:
                return
            far = socket.socket(socket.AF_UNIX)
            far.connect(_ENGINE)
            with self._lock:
                self._open += [near, far]
            for source, target in ((near, far), (far, near)):
                threading.Thread(target=_pass_on, args=(source, target), daemon=True).start()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while chunk := source.recv(_BYTES):
            target.sendall(chunk)
        target.shutdown(socket.SHUT_WR)
