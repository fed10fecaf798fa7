"""A standing cluster with a ZooKeeper server: like others, except for its server and the committed state."""

from contextlib import AbstractAsyncContextManager
from typing import Final

from laststand.chaos.play.barriers import Observation
from laststand.chaos.play.zookeeper_server import recording_syncs, zookeeper_for
from laststand.chaos.process.hosts import make_host
from laststand.chaos.process.target import ProcessTarget
from laststand.chaos.standing.cluster import StandingCluster
from laststand.chaos.standing.order import StandingOrder
from laststand.chaos.standing.status import ZooKeeperStatus
from laststand.chaos.zookeeper.messages import server_messages
from laststand.chaos.zookeeper.metadata import ZooKeeperMetadata
from laststand.chaos.zookeeper.server_events import ServerEvents
from laststand.chaos.zookeeper.target import open_zookeeper_target
from laststand.emulator.cluster.child import ProcessEnd
from laststand.emulator.cluster.process_cluster import ProcessCluster
from laststand.emulator.cluster.zookeeper_cluster import ZooKeeperCluster
from laststand.emulator.cluster.zookeeper_program import records_syncs
from laststand.emulator.core.switches import Switches
from laststand.emulator.core.types import NodeId
from laststand.emulator.core.zookeeper.nodes import paths
from laststand.emulator.core.zookeeper.nodes.small_nodes import decode_controller, decode_controller_epoch

_SESSIONS_AWAITED: Final = 3
_MS_PER_S: Final = 1000


class StandingZooKeeperCluster(StandingCluster):
    """``StandingCluster`` in an era with ZooKeeper."""

    def __init__(self, order: StandingOrder) -> None:
        """Starts nothing yet; errors as in ``StandingCluster``.

        Raises:
            MissingToolError: there is no Java, or no ZooKeeper.
        """
        # What somebody else started has a server.
        program = None if order.project is not None else zookeeper_for((order.era,), order.driver)
        self._zookeeper = recording_syncs(program)
        super().__init__(order)

    def _make_cluster(self) -> ProcessCluster:
        self._events = ServerEvents(
            self._layout,
            has_sync_ledger=records_syncs(self._zookeeper),
            catch_up=lambda: self._cluster.files.catch_up(),
        )
        self._messages = server_messages((), record=self._events.intercepted)
        self._metadata = ZooKeeperMetadata(self._events, on_change=self._changes.change)
        return ZooKeeperCluster(
            self._layout,
            zookeeper=self._zookeeper,
            messages=self._messages,
            on_start=self._note_start,
            on_server_end=self._note_server_end,
            on_unexpected_end=self._notice_crash,
            before_brokers=None if self._before is None else self._await_old_sessions,
            host=make_host(self._order.driver, project=self._order.project),
        )

    def _open_target(self) -> AbstractAsyncContextManager[ProcessTarget]:
        return open_zookeeper_target(
            self._cluster,
            events=self._events,
            metadata=self._metadata,
            messages=self._messages,
            client=self._client_link,
            log=self._log,
            changes=self._changes,
            session_timeout_ms=self._session_timeout_ms,
        )

    def _note_start(self, node_id: NodeId, incarnation: int, own_rules: Switches | None) -> None:
        self._log.started(node_id, incarnation, own_rules)
        if self._order.project is not None and node_id == self._layout.controller_id and not incarnation:
            self._events.found()
        else:
            self._events.started(node_id, incarnation)

    def _note_server_end(self, _: int, end: ProcessEnd) -> None:
        self._events.ended(end.cause)

    async def _await_old_sessions(self) -> None:
        """Waits for the end of the sessions of brokers that were killed: until then they cannot register again.

        Raises:
            StepError: the server keeps the sessions.
        """

        def gone() -> Observation:
            self._metadata.read()
            left = sorted(self._metadata.image.brokers)
            return Observation(reached=not left, text=f"brokers {left} are still registered by sessions of before")

        timeout_s = _SESSIONS_AWAITED * self._session_timeout_ms / _MS_PER_S
        await self._changes.wait(gone, timeout_s=timeout_s)

    def _close_log(self) -> None:
        self._events.close()
        super()._close_log()

    def _zookeeper_status(self) -> ZooKeeperStatus:
        self._metadata.read()
        log = self._events.log
        controller, controller_epoch = log.data(paths.CONTROLLER), log.data(paths.CONTROLLER_EPOCH)
        return ZooKeeperStatus(
            controller=None if controller is None else decode_controller(controller),
            controller_epoch=None if controller_epoch is None else decode_controller_epoch(controller_epoch),
            last_zxid=log.last_zxid,
        )
