"""An administrator at the simulated server: ``core.zookeeper.administration`` by a client that needs no network."""

from typing import Final

from laststand.emulator.core.zookeeper import operations
from laststand.emulator.core.zookeeper.administration import AdministratorRequest, AdministratorResponse, administrate
from laststand.emulator.core.zookeeper.identifiers import SessionId
from laststand.emulator.core.zookeeper.inter_broker_protocol import InterBrokerProtocol
from laststand.emulator.core.zookeeper.rules import ZooKeeperRules
from laststand.emulator.core.zookeeper.server import ZooKeeperServer

_ENDLESS_MS: Final = 1 << 60


class ZooKeeperAdministrator:
    """A client of the server that never expires.

    Args:
        server: where it writes.
        rules: of the cluster, which decide how nodes are written.
        ibp: of the brokers.
    """

    def __init__(self, server: ZooKeeperServer, rules: ZooKeeperRules, ibp: InterBrokerProtocol) -> None:
        self._server = server
        self._rules = rules
        self._ibp = ibp
        self._session_id: SessionId = server.open_session(timeout_ms=_ENDLESS_MS, now_ms=0)

    def handle(self, request: AdministratorRequest) -> AdministratorResponse:
        """Performs an administrator's request; returns the result for each subject, in order."""
        program = administrate(request, self._rules, self._ibp)
        try:
            steps = next(program)
            while True:
                steps = program.send(self._server.execute(self._session_id, steps))
        except StopIteration as stop:
            response: AdministratorResponse = stop.value
            return response

    def delete_node(self, path: str) -> None:
        """Deletes a node whatever its version (``zookeeper-shell delete``), if it is there."""
        self._server.execute(self._session_id, (operations.Delete(path=path, version=None),))
