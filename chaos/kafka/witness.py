"""Writes the event files of Kafka's nodes, with what can be observed from outside.

A controller's events are its metadata log; the events of several controllers are their committed records, in the file
of the present leader, with the elections that ``quorum_witness.py`` observes. Of a broker these are known: the ends of
its processes, the broker epoch that it leaves in its log directory when it stops in order, and its output about its
roles and truncations; not its appends, nor its high watermarks. Each file says who wrote it, so that no check takes a
missing event for something that did not happen.
"""

import time
from collections.abc import Sequence
from typing import Final

from laststand.chaos.kafka.causes import Causes
from laststand.chaos.kafka.quorum_witness import QuorumWitness
from laststand.emulator.cluster.child import EndCause
from laststand.emulator.cluster.layout import ClusterLayout
from laststand.emulator.core import events, records
from laststand.emulator.core.controller.committed_events import committed_events
from laststand.emulator.core.controller.decision import Decision
from laststand.emulator.core.controller.view import ClusterView
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.properties import node_properties
from laststand.emulator.core.switches import Switches, switch_texts
from laststand.emulator.core.types import (
    BrokerEpoch,
    BrokerId,
    BrokerState,
    CauseId,
    IncarnationId,
    MetadataOffset,
    NodeId,
    NodeRole,
    Witness,
)
from laststand.emulator.kafka.broker_log_lines import BrokerLogReader
from laststand.emulator.kafka.metadata_log import CommittedBatch
from laststand.emulator.kafka.metadata_records import OtherRecord
from laststand.emulator.node.event_writer import EventWriter
from laststand.emulator.storage.clean_shutdown import CLEAN_SHUTDOWN_FILE, parse_broker_epoch

_CAUSE: Final = CauseId("kafka")


class NodeWitness:
    """Writer of the event files of all nodes of a run.

    Args:
        layout: of the cluster.

    Attributes:
        image: fold of the metadata log, as far as it was received.
        quorum: the observer of several controllers.
    """

    def __init__(self, layout: ClusterLayout) -> None:
        self.image = MetadataImage()
        self._layout = layout
        self._view = self._view_of(self.image)
        self._files: dict[NodeId, EventWriter] = {}
        self._rules: dict[NodeId, Switches] = {}
        self._registered: set[NodeId] = set()
        self._early: dict[NodeId, list[events.Event]] = {}
        self._printed: dict[NodeId, BrokerLogReader] = {}
        self._stopping: set[NodeId] = set()
        self._previous_epochs: dict[BrokerId, BrokerEpoch] = {}
        self.quorum = QuorumWitness(layout, record=self._record)

    def _view_of(self, image: MetadataImage) -> ClusterView:
        return ClusterView(
            image=image,
            properties=node_properties(dict(self._layout.properties)),
            switches=self._layout.switches,
            node_id=self._layout.controller_id,
        )

    def started(self, node_id: NodeId, incarnation: int, own_rules: Switches | None = None) -> None:
        """Notes that a node's process is about to start; the files of the last one are still in its log directory.

        Args:
            node_id: the node.
            incarnation: number of the process.
            own_rules: rules of its release, if they are not the run's.
        """
        self._rules[node_id] = own_rules or self._layout.switches
        path = self._layout.event_file(node_id, incarnation)
        self._files[node_id] = EventWriter(str(path), run=self._layout.run, node_id=node_id, incarnation=incarnation)
        self._registered.discard(node_id)
        self._early[node_id] = []
        self._stopping.discard(node_id)
        if node_id in self._layout.controller_ids:
            self.quorum.started(node_id)
            self._name(node_id, IncarnationId(f"controller-{node_id}-{incarnation}"))
            return
        self._printed[node_id] = BrokerLogReader(self._layout.node_log(node_id), cause_id=_CAUSE)
        if (epoch := self._epoch_on_disk(node_id)) is not None:
            self._previous_epochs[BrokerId(node_id)] = epoch
        else:
            self._previous_epochs.pop(BrokerId(node_id), None)

    def stopping(self, node_id: NodeId) -> None:
        """Notes that a node's process is about to be stopped in order."""
        self._stopping.add(node_id)

    def ended(self, node_id: NodeId, incarnation: int, cause: EndCause) -> None:
        """Notes that a node's process ended."""
        self._read_printed(node_id)
        self._printed.pop(node_id, None)
        file = self._files.pop(node_id, None)
        if file is None:
            return
        if node_id not in self._registered:
            self._files[node_id] = file
            self._name(node_id, IncarnationId(f"unregistered-{node_id}-{incarnation}"))
            del self._files[node_id]
        if cause is EndCause.STOPPED:
            epoch = None if node_id in self._layout.controller_ids else self._epoch_on_disk(node_id)
            if epoch is not None:
                file.add(
                    events.BrokerStateChanged(
                        cause_id=_CAUSE,
                        old=BrokerState.RUNNING,
                        new=BrokerState.SHUTTING_DOWN,
                        broker_epoch=epoch,
                    )
                )
            file.add(events.NodeStopped(cause_id=_CAUSE))
        file.close()

    def intercepted(self, event: events.MessageIntercepted) -> None:
        """Records that the harness affected a message to a node, or the node's response."""
        self._record(event.target, [event])

    def poll(self) -> None:
        """Writes events for the lines that brokers printed since the last call."""
        for node_id in self._printed:
            self._read_printed(node_id)
        self.quorum.poll()

    def _read_printed(self, node_id: NodeId) -> None:
        if node_id in self._printed:
            self._record(node_id, self._printed[node_id].read_new())

    def _record(self, node_id: NodeId, events: Sequence[events.Event]) -> None:
        """Writes events of a running process, or keeps them until its first line can be written."""
        file = self._files.get(node_id)
        if file is None:
            return
        if node_id not in self._registered:
            self._early[node_id].extend(events)
            return
        for event in events:
            file.add(event)
        file.flush()

    def committed(self, batch: CommittedBatch) -> None:
        """Applies the next batch of the metadata log, and writes the events of Laststand's controller for it.

        Raises:
            InvariantError: the batch does not continue the last one.
        """
        file = self._file_of_controller()
        causes = Causes(batch.records, view=self._view, previous_epochs=self._previous_epochs, stopping=self._stopping)
        for place, record in enumerate(batch.records):
            offset = MetadataOffset(batch.base_offset + place)
            for event in self._replay(record, offset, causes):
                if file is not None:
                    file.add(event)
        if file is not None:
            file.flush()

    def _file_of_controller(self) -> EventWriter | None:
        """Returns the file of the controllers' leader, or of another controller that runs."""
        leader, *others = sorted(self._layout.controller_ids, key=lambda node_id: node_id != self.quorum.leader_id)
        return next((file for each in (leader, *others) if (file := self._files.get(each)) is not None), None)

    def forget(self, kept: Sequence[CommittedBatch]) -> None:
        """Resets the image to these batches: the quorum has lost later batches that it had committed."""
        self.image = MetadataImage()
        self._view = self._view_of(self.image)
        for batch in kept:
            for offset, record in enumerate(batch.records, batch.base_offset):
                if isinstance(record, OtherRecord):
                    self.image.skip(offset=MetadataOffset(offset))
                else:
                    self.image.replay(record, offset=MetadataOffset(offset))
        self.image.pop_delta()

    def _replay(
        self, record: records.Record | OtherRecord, offset: MetadataOffset, causes: Causes
    ) -> Sequence[events.ControllerEvent]:
        if isinstance(record, OtherRecord):
            self.image.skip(offset=offset)
            return [events.OtherRecordCommitted(cause_id=_CAUSE, metadata_offset=offset, record=record.name)]
        is_known = isinstance(record, records.RegisterBrokerRecord) and self._is_registered(record)
        decision = Decision(record=record, cause=causes.of(record))
        self.image.replay(record, offset=offset)
        delta = self.image.pop_delta()
        other = events.OtherRecordCommitted(cause_id=_CAUSE, metadata_offset=offset, record=type(record).__name__)
        if is_known:
            return [other]
        if isinstance(record, records.RegisterBrokerRecord):
            self._name(record.broker_id, record.incarnation_id)
        # A change of a registration may change only what is not emulated, such as cordoned directories (KIP-1066).
        return committed_events(decision, offset=offset, delta=delta, view=self._view, cause_id=_CAUSE) or [other]

    def _is_registered(self, record: records.RegisterBrokerRecord) -> bool:
        """Returns whether a process only repeats its registration: it keeps its broker epoch."""
        known = self.image.brokers.get(record.broker_id)
        return known is not None and known.incarnation_id == record.incarnation_id

    def close(self) -> None:
        """Closes the files of processes whose end was not observed."""
        for node_id in tuple(self._files):
            self.ended(node_id, 0, EndCause.UNEXPECTED)

    def _name(self, node_id: NodeId, incarnation_id: IncarnationId) -> None:
        """Writes the first line of a process's file, now that its identity is known."""
        file = self._files.get(node_id)
        if file is None or node_id in self._registered:
            return
        self._registered.add(node_id)
        is_controller = node_id in self._layout.controller_ids
        file.add(
            events.NodeStarted(
                cause_id=_CAUSE,
                role=NodeRole.CONTROLLER if is_controller else NodeRole.BROKER,
                incarnation_id=incarnation_id,
                switches=switch_texts(self._rules[node_id]),
                properties=dict(self._layout.properties),
                wall_time_ns=time.time_ns(),
                witness=Witness.HARNESS,
            )
        )
        for event in self._early[node_id]:
            file.add(event)
        file.flush()

    def _epoch_on_disk(self, node_id: NodeId) -> BrokerEpoch | None:
        path = self._layout.data_directory(node_id) / CLEAN_SHUTDOWN_FILE
        epoch = parse_broker_epoch(path.read_bytes()) if path.is_file() else None
        return None if epoch is None or epoch < 0 else BrokerEpoch(epoch)
