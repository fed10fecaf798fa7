"""Makes a run directory of what a real cluster left behind, so that its story can be told like that of a run.

::

    cluster.yaml  scenario.yaml      a name, and the era whose rules are nearest to the cluster's
    events/<controller>-0.jsonl      the metadata log, record by record; times are those of the records
    events/<broker>-<n>.jsonl        one line per registration of a broker: nothing else is known of its processes
    events/harness-0.jsonl           that these processes started
    nodes/<broker>/data/             links to the folders of partitions, and copies of the small files

There is no history: what clients sent and what was acknowledged to them is in no log. So its verdict is ``unknown``;
the story has leaders, ISR and ELR over time, and what the logs hold at the end. Compacted topics stay out: the oracle
takes the gaps in their logs for lost batches.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import yaml

from chaos.kafka.causes import Causes
from chaos.play.run_directory import DIRECTORY_MODE
from emulator.autopsy.log_directories import LogDirectoryFacts
from emulator.core.controller.committed_events import committed_events
from emulator.core.controller.decision import Decision
from emulator.core.controller.view import ClusterView
from emulator.core.errors import ConfigError, StorageError
from emulator.core.events import (
    ControllerEvent,
    IncarnationStarted,
    NodeStarted,
    OtherRecordCommitted,
    PartitionEvent,
    RunEnded,
)
from emulator.core.image import MetadataImage
from emulator.core.metadata_version import LEVELS, METADATA_VERSION
from emulator.core.properties import NodeProperties
from emulator.core.records import Record, RegisterBrokerRecord
from emulator.core.switches import Switches, era_switches, switch_texts
from emulator.core.types import (
    BrokerEpoch,
    BrokerId,
    CauseId,
    ConfigResource,
    IncarnationId,
    NodeId,
    NodeRole,
    TopicPartition,
    Witness,
)
from emulator.kafka.metadata_copy import DatedRecord, MetadataCopy, add_to, fold, read_metadata_copy
from emulator.kafka.metadata_records import OtherRecord
from emulator.node.event_writer import EventWriter
from emulator.plan.nodes import HARNESS

_CAUSE: Final = CauseId("kafka")
_NS_PER_MS: Final = 1_000_000
_CONTROLLER_WITHOUT_DIRECTORY: Final = NodeId(100)
_ELR_SINCE: Final = LEVELS.index("4.0-IV0")
_RUN: Final = "imported"


def newest_metadata_copy(directories: Sequence[LogDirectoryFacts]) -> MetadataCopy:
    """Returns the longest copy of the metadata log.

    Raises:
        ConfigError: there is none.
        StorageError: one cannot be read.
    """
    copies = [read_metadata_copy(each.metadata_log) for each in directories if each.metadata_log is not None]
    if not copies:
        names = ", ".join(str(each.path) for each in directories)
        raise ConfigError(key="DIR", value=names, expected="a copy of __cluster_metadata-0 among them")
    return max(copies, key=lambda copy: copy.end_offset)


def import_run(
    directories: Sequence[LogDirectoryFacts], target: Path, *, only: frozenset[TopicPartition] | None
) -> None:
    """Makes a run directory.

    Args:
        directories: of the brokers and controllers of one cluster.
        target: must not exist.
        only: the partitions that are imported; ``None`` is all but Kafka's own and compacted ones.

    Raises:
        ConfigError: there is no metadata log, or one of ``only`` is not in it or compacted.
        StorageError: a file cannot be read or written.
    """
    copy = newest_metadata_copy(directories)
    image = fold(copy)
    known = frozenset(partition for partition in image.partitions if _is_importable(partition.topic, image))
    chosen = known if only is None else only
    unknown = sorted(chosen - known)
    if unknown:
        names = ", ".join(map(str, sorted(known)))
        raise ConfigError(
            key="--partition",
            value=str(unknown[0]),
            expected=f"one that is not compacted, and in the metadata log: {names}",
        )
    era = "kafka-4.2" if image.feature_level(METADATA_VERSION) >= _ELR_SINCE else "kafka-3.9"
    controller = next((each.node_id for each in directories if each.node_id not in image.brokers), None)
    try:
        target.mkdir(parents=True, mode=DIRECTORY_MODE)
        (target / "events").mkdir()
        _write_descriptions(target, era, controllers=controller, image=image, copy=copy)
        importer = _Importer(target, era_switches(era), controller or _CONTROLLER_WITHOUT_DIRECTORY, chosen)
        importer.write(copy)
        for directory in directories:
            if directory.node_id in image.brokers:
                _link_logs(directory, target / "nodes" / str(directory.node_id) / "data", chosen)
    except OSError as error:
        raise StorageError(path=str(error.filename or target), reason=error.strerror or str(error)) from error


def _is_importable(topic: str, image: MetadataImage) -> bool:
    policy = image.config(ConfigResource.TOPIC, topic, "cleanup.policy") or ""
    return not topic.startswith("__") and "compact" not in policy


def _write_descriptions(
    target: Path, era: str, *, controllers: NodeId | None, image: MetadataImage, copy: MetadataCopy
) -> None:
    cluster = {
        "run": _RUN,
        "scenario": _RUN,
        "era": era,
        "driver": _RUN,
        "controllers": [int(controllers or _CONTROLLER_WITHOUT_DIRECTORY)],
        "brokers": [int(broker) for broker in sorted(image.brokers)],
    }
    scenario = {"name": _RUN, "description": f"A real cluster, from {copy.directory}."}
    for name, document in (("cluster.yaml", cluster), ("scenario.yaml", scenario)):
        (target / name).write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")


def _link_logs(directory: LogDirectoryFacts, data: Path, chosen: frozenset[TopicPartition]) -> None:
    data.mkdir(parents=True, exist_ok=True)
    for partition, folder in directory.partitions():
        if partition in chosen:
            (data / folder.name).symlink_to(folder.resolve(), target_is_directory=True)
    for file in directory.path.iterdir():
        if file.is_file() and (file.name.endswith("-checkpoint") or file.name.startswith((".kafka", "meta."))):
            shutil.copyfile(file, data / file.name)


class _Importer:
    """Writes the event files of a run."""

    def __init__(self, target: Path, switches: Switches, controller: NodeId, chosen: frozenset[TopicPartition]) -> None:
        self._events = target / "events"
        self._switches = switches
        self._controller = controller
        self._chosen = chosen
        self._now_ns = 0
        self._image = MetadataImage()
        self._view = ClusterView(image=self._image, properties=NodeProperties(), switches=switches, node_id=controller)
        self._incarnations: dict[BrokerId, int] = {}
        self._harness = self._open("harness-0", HARNESS, 0)

    def write(self, copy: MetadataCopy) -> None:
        """Writes everything that a metadata log tells.

        Raises:
            StorageError: a record changes what does not exist, or a file cannot be written.
        """
        self._now_ns = copy.records[0].timestamp_ms * _NS_PER_MS if copy.records else 0
        self._harness.add(self._start(NodeRole.HARNESS, IncarnationId(_RUN), Witness.PROCESS))
        controller = self._open(f"{self._controller}-0", self._controller, 0)
        self._begin(self._controller, 0)
        controller.add(self._start(NodeRole.CONTROLLER, IncarnationId("controller"), Witness.HARNESS))
        batches: dict[int, list[DatedRecord]] = {}
        for dated in copy.records:
            batches.setdefault(dated.batch_offset, []).append(dated)
        for batch in batches.values():
            self._now_ns = max(self._now_ns, batch[0].timestamp_ms * _NS_PER_MS)
            causes = Causes(
                [dated.record for dated in batch], view=self._view, previous_epochs=self._epochs_of_clean_stops()
            )
            for dated in batch:
                for event in self._replay(dated, causes, copy.directory):
                    controller.add(event)
            controller.flush()
        controller.close()
        self._harness.add(RunEnded(cause_id=_CAUSE, problem="it was imported: nobody saw what its clients did"))
        self._harness.close()

    def _replay(self, dated: DatedRecord, causes: Causes, directory: str) -> list[ControllerEvent]:
        record = dated.record
        if isinstance(record, OtherRecord):
            add_to(self._image, dated, directory=directory)
            return [OtherRecordCommitted(cause_id=_CAUSE, metadata_offset=dated.offset, record=record.name)]
        decision = Decision(record=record, cause=causes.of(record))
        add_to(self._image, dated, directory=directory)
        delta = self._image.take_delta()
        self._note_incarnation(record)
        events = committed_events(decision, offset=dated.offset, delta=delta, view=self._view, cause_id=_CAUSE)
        kept = [event for event in events if self._is_chosen(event)]
        if kept:
            return kept
        name = type(record).__name__
        return [OtherRecordCommitted(cause_id=_CAUSE, metadata_offset=dated.offset, record=name)]

    def _is_chosen(self, event: ControllerEvent) -> bool:
        return not isinstance(event, PartitionEvent) or TopicPartition(event.topic, event.partition) in self._chosen

    def _epochs_of_clean_stops(self) -> dict[BrokerId, BrokerEpoch]:
        """Returns the epochs of brokers that announced their shutdown: the log tells no more of how they ended."""
        return {
            broker_id: registration.broker_epoch
            for broker_id, registration in self._image.brokers.items()
            if registration.in_controlled_shutdown
        }

    def _note_incarnation(self, record: Record) -> None:
        if not isinstance(record, RegisterBrokerRecord):
            return
        incarnation = self._incarnations.get(record.broker_id, -1) + 1
        self._incarnations[record.broker_id] = incarnation
        self._begin(record.broker_id, incarnation)
        file = self._open(f"{record.broker_id}-{incarnation}", record.broker_id, incarnation)
        file.add(self._start(NodeRole.BROKER, record.incarnation_id, Witness.HARNESS))
        file.close()

    def _begin(self, node_id: NodeId, incarnation: int) -> None:
        self._harness.add(
            IncarnationStarted(
                cause_id=_CAUSE,
                started_node=node_id,
                started_incarnation=incarnation,
                event_file=f"events/{node_id}-{incarnation}.jsonl",
            )
        )
        self._harness.flush()

    def _start(self, role: NodeRole, incarnation_id: IncarnationId, witness: Witness) -> NodeStarted:
        return NodeStarted(
            cause_id=_CAUSE,
            role=role,
            incarnation_id=incarnation_id,
            switches=switch_texts(self._switches) if role is not NodeRole.HARNESS else {},
            properties={},
            wall_time_ns=self._now_ns,
            witness=witness,
        )

    def _open(self, stem: str, node_id: NodeId, incarnation: int) -> EventWriter:
        return EventWriter(
            str(self._events / f"{stem}.jsonl"),
            run=_RUN,
            node_id=node_id,
            incarnation=incarnation,
            clock=lambda: self._now_ns,
        )
