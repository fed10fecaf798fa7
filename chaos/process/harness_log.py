"""The harness's own event file, ``events/harness-<incarnation>.jsonl``: what it started, broke, healed and observed."""

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from laststand.chaos.process.faults_in_force import FaultsInForce
from laststand.chaos.scenario.scenario import Ending
from laststand.emulator.cluster.layout import event_file_name
from laststand.emulator.core.eras import rule_texts
from laststand.emulator.core.events import (
    EVIDENCE_FORMAT,
    BitFlipped,
    Event,
    IncarnationEnd,
    IncarnationEnded,
    IncarnationStarted,
    NodeStarted,
    NodeStopped,
    PowerLost,
    RunEnded,
)
from laststand.emulator.core.switches import Switches
from laststand.emulator.core.types import (
    CauseId,
    IncarnationId,
    MetadataOffset,
    NodeId,
    NodeRole,
    Offset,
    TopicId,
    TopicPartition,
    Witness,
    kafka_client_ids,
)
from laststand.emulator.node.event_writer import EventWriter
from laststand.emulator.plan.drivers import DriverName
from laststand.emulator.storage.bit_flip import FlippedBit
from laststand.emulator.storage.evidence_files import vouchers

HARNESS: Final = NodeId(2000)
"""Stands for the harness on its lines; it is no node of the cluster."""


class HarnessLog:
    """Writer of the harness's events; each is on disk when its method returns.

    Args:
        events: folder of the run's event files.
        run: the run's id.
        wall_time_ns: now, by the calendar.
        driver: the driver of the run.
        ending: what happens to the cluster at the end of its scenario; ``None`` without a scenario.
        incarnation: number of the harness in this run, from 0; only a standing cluster has several.
        kafka_clients: names of the clients of Kafka that have links of their own.
        standby_controllers: those that were no voters when the cluster was formatted.
        witness: the writer of the run's node events.

    Attributes:
        cause_id: of new events: the step that is being played.
        is_by_hand: whether a person gives each step, not a scenario.
        faults: those that this harness injected, and did not heal since.
    """

    def __init__(
        self,
        events: Path,
        *,
        run: str,
        wall_time_ns: int,
        driver: DriverName,
        ending: Ending | None,
        incarnation: int = 0,
        kafka_clients: Iterable[str] = (),
        standby_controllers: tuple[NodeId, ...] = (),
        witness: Witness = Witness.PROCESS,
    ) -> None:
        self.cause_id = CauseId("harness")
        self.is_by_hand = ending is None
        self.faults = FaultsInForce()
        self._run_directory = events.parent
        self._path = path = events / f"harness-{incarnation}.jsonl"
        self._writer = EventWriter(str(path), run=run, node_id=HARNESS, incarnation=incarnation)
        self.note(
            NodeStarted(
                cause_id=self.cause_id,
                role=NodeRole.HARNESS,
                incarnation_id=IncarnationId("harness"),
                switches={},
                properties={},
                wall_time_ns=wall_time_ns,
                driver=driver.value,
                ending=None if ending is None else ending.value,
                evidence_format=EVIDENCE_FORMAT,
                witness=witness,
                kafka_clients={name: client_id for client_id, name in kafka_client_ids(kafka_clients).items()},
                standby_controllers=standby_controllers,
            )
        )

    def started(self, node_id: NodeId, incarnation: int, own_rules: Switches | None = None) -> None:
        """Records that a node's process is about to start, with its own rules if they are not the run's."""
        self.note(
            IncarnationStarted(
                cause_id=self.cause_id,
                started_node=node_id,
                started_incarnation=incarnation,
                event_file=event_file_name(node_id, incarnation),
                switches={} if own_rules is None else rule_texts(own_rules),
            )
        )

    def ended(
        self,
        node_id: NodeId,
        incarnation: int,
        end: IncarnationEnd,
        *,
        exit_code: int | None,
        metadata_offset: MetadataOffset | None,
    ) -> None:
        """Records that a node's process ended."""
        self.note(
            IncarnationEnded(
                cause_id=self.cause_id,
                ended_node=node_id,
                ended_incarnation=incarnation,
                end=end,
                exit_code=exit_code,
                metadata_offset=metadata_offset,
            )
        )

    def power_lost(
        self,
        node_id: NodeId,
        incarnation: int,
        partition: TopicPartition,
        *,
        topic_id: TopicId,
        keep: str,
        old_end_offset: Offset,
        new_end_offset: Offset,
    ) -> None:
        """Records the loss of one log in a power loss."""
        self.note(
            PowerLost(
                cause_id=self.cause_id,
                topic=partition.topic,
                partition=partition.partition,
                topic_id=topic_id,
                lost_node=node_id,
                lost_incarnation=incarnation,
                keep=keep,
                old_end_offset=old_end_offset,
                new_end_offset=new_end_offset,
            )
        )

    def bit_flipped(
        self, node_id: NodeId, partition: TopicPartition, flipped: FlippedBit, *, topic_id: TopicId
    ) -> None:
        """A bit of a stored batch was flipped."""
        batch = flipped.batch
        self.note(
            BitFlipped(
                cause_id=self.cause_id,
                topic=partition.topic,
                partition=partition.partition,
                topic_id=topic_id,
                flipped_node=node_id,
                base_offset=batch.base_offset,
                last_offset=batch.last_offset,
                leader_epoch=batch.leader_epoch,
                crc=batch.crc,
                damaged_crc=flipped.damaged_crc,
            )
        )

    def note(self, event: Event) -> None:
        """Writes an event; it is on disk when this returns."""
        self.faults.note(event, now_s=time.monotonic())
        self._writer.add(event)
        self._writer.flush()

    def close(self, *, problem: str | None) -> None:
        """Records the end of the run; all other writers are done, and nothing is written after this."""
        self._vouch()
        self.note(RunEnded(cause_id=self.cause_id, problem=problem))
        self.suspend()

    def _vouch(self) -> None:
        """Records the run's files, once all are complete: events, histories, descriptions, and the nodes' data."""
        for event in vouchers(self._run_directory, but_for=self._path, cause_id=self.cause_id):
            self._writer.add(event)
        self._writer.flush()

    def suspend(self) -> None:
        """Records that this harness ends but the run does not: another harness continues it."""
        self.note(NodeStopped(cause_id=self.cause_id))
        self._writer.close()
