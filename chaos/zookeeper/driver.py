"""Plays a run on real processes around a ZooKeeper server."""

import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from laststand.chaos.play.run_order import RunOrder
from laststand.chaos.process.driver import ProcessDriver
from laststand.chaos.process.hosts import make_host
from laststand.chaos.process.proxied_messages import proxied_links
from laststand.chaos.process.target import ProcessTarget
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


class ZooKeeperDriver(ProcessDriver):
    """``Driver`` of processes around a ZooKeeper server; arguments as in ``ProcessDriver``."""

    def __init__(self, order: RunOrder, *, logger: logging.Logger, on_problem: Callable[[str], None]) -> None:
        self._events = ServerEvents(order.layout, has_sync_ledger=records_syncs(order.zookeeper))
        self._messages = server_messages(proxied_links(order.scenario), record=self._events.intercepted)
        super().__init__(order, logger=logger, on_problem=on_problem)
        self._metadata = ZooKeeperMetadata(self._events, on_change=self._changes.change)

    def _make_cluster(self) -> ProcessCluster:
        return ZooKeeperCluster(
            self._order.layout,
            zookeeper=self._order.zookeeper,
            messages=self._messages,
            on_start=self._note_start,
            on_server_end=self._note_end,
            on_unexpected_end=self._notice_crash,
            host=make_host(self._order.driver),
        )

    def _open_target(self) -> AbstractAsyncContextManager[ProcessTarget]:
        return open_zookeeper_target(
            self._cluster,
            events=self._events,
            metadata=self._metadata,
            messages=self._messages,
            client=self._client,
            log=self._log,
            changes=self._changes,
            session_timeout_ms=self._session_timeout_ms,
        )

    async def close(self, *, problem: str | None) -> None:
        """Ends the server's event file, then the harness's."""
        self._events.close()
        await super().close(problem=problem)

    def _note_start(self, node_id: NodeId, incarnation: int, own_rules: Switches | None) -> None:
        self._log.started(node_id, incarnation, own_rules)
        self._events.started(node_id, incarnation)

    def _note_end(self, _: int, end: ProcessEnd) -> None:
        self._events.ended(end.cause)
