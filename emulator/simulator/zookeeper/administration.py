"""Administrators' requests at the simulated server: ``core.zookeeper.admin_manager`` with a client without network."""

from typing import Final

from laststand.emulator.core.zookeeper import operations
from laststand.emulator.core.zookeeper.admin_manager import AdminRequest, AdminResponse, AdminSettings, administer
from laststand.emulator.core.zookeeper.identifiers import SessionId
from laststand.emulator.core.zookeeper.server import ZooKeeperServer

_ENDLESS_MS: Final = 1 << 60


class ZooKeeperAdministrator:
    """A client of the server that never expires.

    Args:
        server: the server that it writes to.
        settings: settings on which its decisions depend.
    """

    def __init__(self, server: ZooKeeperServer, settings: AdminSettings) -> None:
        self._server = server
        self._settings = settings
        self._session_id: SessionId = server.open_session(timeout_ms=_ENDLESS_MS, now_ms=0)

    def handle(self, request: AdminRequest) -> AdminResponse:
        """Carries out an administrator's request; returns the result for each subject, in order."""
        program = administer(request, self._settings)
        try:
            steps = next(program)
            while True:
                steps = program.send(self._server.execute(self._session_id, steps))
        except StopIteration as stop:
            response: AdminResponse = stop.value
            return response

    def delete_node(self, path: str) -> None:
        """Deletes a node whatever its version (``zookeeper-shell delete``), if it is there."""
        self._server.execute(self._session_id, (operations.Delete(path=path, version=None),))
