"""Plays a run in virtual time: the same scenario, steps and barriers, and a run directory of the same form."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from laststand.chaos.play.run_order import RunOrder
from laststand.chaos.play.workload import producers_of
from laststand.chaos.simulated.clients import ClientObserver, SimulatedClients
from laststand.chaos.simulated.target import SimulatedTarget, cores_at_work
from laststand.emulator.core.properties import node_properties
from laststand.emulator.core.types import TopicPartition
from laststand.emulator.plan import actions
from laststand.emulator.simulator.nodes.batch_registry import BatchRegistry
from laststand.emulator.simulator.run.evidence import BatchBytes, write_evidence
from laststand.emulator.simulator.run.kinds import make_cluster

_LAST_LINES_MS: Final = 1


class SimulatorDriver:
    """``Driver`` in virtual time; it does not depend on the machine's clock.

    Args:
        order: the order to play.
    """

    def __init__(self, order: RunOrder) -> None:
        self._order = order
        self._content = BatchBytes({config.name: config.record_size for config in producers_of(order.scenario)})
        self._observer = ClientObserver(order.scenario)
        self._cluster = make_cluster(
            brokers=order.scenario.brokers,
            controllers=order.scenario.controllers,
            standby_controllers=order.scenario.standby_controllers,
            combined=order.scenario.combined,
            switches=order.switches,
            properties=node_properties(dict(order.properties)),
            observer=self._observer,
            batches=BatchRegistry(self._content.encode),
        )
        self._clients = SimulatedClients(self._cluster, order.scenario, self._observer)
        self._target = SimulatedTarget(self._cluster, self._clients)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[SimulatedTarget]:
        """Starts the brokers; the controller runs already."""
        with cores_at_work():
            for node in self._cluster.nodes.values():
                self._cluster.processes.start(node)
        try:
            yield self._target
        finally:
            self._target.end(actions.Kill(nodes=(*self._cluster.nodes, *self._cluster.metadata_nodes)))

    async def start_work(self) -> None:
        """Starts the clients' state machines."""
        with cores_at_work():
            self._clients.start()

    async def stop_work(self, *, timeout_ms: int) -> None:
        """Advances virtual time until everything is answered."""
        with cores_at_work():
            self._clients.stop(timeout_ms=timeout_ms)

    async def read_all(self, partitions: tuple[TopicPartition, ...], *, timeout_ms: int) -> None:
        """Advances virtual time until partitions are read."""
        with cores_at_work():
            self._clients.read_all(partitions, timeout_ms=timeout_ms)

    async def stop(self) -> None:
        """Stops all brokers at once, then the controller."""
        self._target.end(actions.Stop(nodes=tuple(self._cluster.nodes)))
        self._target.end(actions.Stop(nodes=tuple(self._cluster.metadata_nodes)))
        self._cluster.run(_LAST_LINES_MS)

    async def close(self, *, problem: str | None) -> None:
        """Writes all events and the history."""
        write_evidence(
            self._order.directory,
            self._cluster,
            self._observer.journal,
            self._content,
            acks=self._clients.acks,
            problem=problem,
        )
