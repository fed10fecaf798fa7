"""Makes a run directory from a real cluster's files, so that it can be reported like a run of Laststand.

::

    cluster.yaml  scenario.yaml      a name, and the era whose rules are nearest to the cluster's
    events/<controller>-0.jsonl      the metadata log, record by record; times are those of the records
    events/<broker>-<n>.jsonl        one line per registration of a broker: nothing else is known of its processes
    events/harness-0.jsonl           that these processes started
    nodes/<broker>/data/             links to the folders of partitions, and the small files of all its directories

There is no history: no log has the clients' sends and acknowledgements. So its verdict is ``unknown``; the story has
leaders, ISR and ELR over time, and the content of the logs at the end. Compacted topics are left out: the oracle would
take the gaps in their logs for lost batches.

A broker may have several log directories; its run directory has one. Of several logs of a partition on one broker, the
one that the metadata log names counts (``broker_logs``); if it names none, the longest is taken, and that is recorded.

The run is made beside its final place and moved there when it is complete.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import yaml

from laststand.chaos.kafka.causes import Causes
from laststand.chaos.kafka.imported_logs import chosen_logs, lay_out_broker
from laststand.chaos.play.run_directory import DIRECTORY_MODE
from laststand.emulator.autopsy.log_directories import LogDirectoryFacts
from laststand.emulator.core import records
from laststand.emulator.core.controller.committed_events import committed_events
from laststand.emulator.core.controller.decision import Decision
from laststand.emulator.core.controller.view import ClusterView
from laststand.emulator.core.errors import ConfigError, StorageError
from laststand.emulator.core.events import (
    ControllerEvent,
    IncarnationStarted,
    NodeStarted,
    OtherRecordCommitted,
    PartitionEvent,
    RunEnded,
)
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.metadata_version import LEVELS, METADATA_VERSION
from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.switches import Switches, era_switches, switch_texts
from laststand.emulator.core.types import (
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
from laststand.emulator.kafka.metadata_copy import (
    DatedRecord,
    MetadataCopy,
    add_to,
    fold,
    read_metadata_copy,
    replica_directories,
)
from laststand.emulator.kafka.metadata_records import OtherRecord
from laststand.emulator.node.event_writer import EventWriter
from laststand.emulator.plan.nodes import HARNESS
from laststand.emulator.verification.reading.run_directory import IMPORTED

_CAUSE: Final = CauseId("kafka")
_NS_PER_MS: Final = 1_000_000
_CONTROLLER_WITHOUT_DIRECTORY: Final = NodeId(100)
_ELR_SINCE: Final = LEVELS.index("4.0-IV0")
_RUN: Final = "imported"
_PREFIX_LENGTH: Final = 100
_NAMED_MAX: Final = 1


def newest_metadata_copy(directories: Sequence[LogDirectoryFacts]) -> tuple[MetadataCopy, list[str]]:
    """Returns the longest copy of the metadata log, and why others cannot be read.

    Raises:
        ConfigError: there is none that can be read and holds a record.
    """
    copies: list[MetadataCopy] = []
    problems: list[str] = []
    for log in (each.metadata_log for each in directories if each.metadata_log is not None):
        try:
            copies.append(read_metadata_copy(log))
        except StorageError as error:
            problems.append(f"a metadata log cannot be read: {error}")
    problems += [f"a metadata log is damaged: {copy.problem}" for copy in copies if copy.problem is not None]
    newest = max(copies, key=lambda copy: copy.end_offset, default=None)
    if newest is None or not newest.records:
        found = f" with a record in it ({problems[0]})" if problems else ""
        expected = f"a copy of __cluster_metadata-0{found} among them"
        raise ConfigError(key="DIR", value=_named(directories), expected=expected)
    return newest, problems


def import_run(
    directories: Sequence[LogDirectoryFacts], target: Path, *, only: frozenset[TopicPartition] | None
) -> tuple[str, ...]:
    """Makes a run directory, whole or not at all; returns what could not be read, or is not certain, in words.

    Args:
        directories: of the brokers and controllers of one cluster.
        target: must not exist.
        only: the partitions that are imported; ``None`` is all but Kafka's own and compacted ones.

    Raises:
        ConfigError: there is no metadata log, or a partition of ``only`` is not in it or compacted.
        StorageError: a file cannot be read or written.
    """
    copy, problems = newest_metadata_copy(directories)
    problems += [problem for each in directories for problem in each.problems]
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
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name[:_PREFIX_LENGTH]}-") as scratch:
            fresh = Path(scratch) / "run"
            fresh.mkdir(mode=DIRECTORY_MODE)
            (fresh / "events").mkdir()
            _write_descriptions(fresh, era, controllers=controller, image=image, copy=copy)
            for broker_id in sorted(image.brokers):
                own = [directory for directory in directories if directory.node_id == broker_id]
                if own:
                    logs = chosen_logs(own, chosen, image, replica_directories(copy), problems)
                    lay_out_broker(own, logs, fresh / "nodes" / str(broker_id) / "data")
            importer = _Importer(fresh, era_switches(era), controller or _CONTROLLER_WITHOUT_DIRECTORY, chosen)
            importer.write(copy, problems)
            fresh.rename(target)
    except OSError as error:
        raise StorageError(path=str(error.filename or target), reason=error.strerror or str(error)) from error
    return tuple(problems)


def _named(directories: Sequence[LogDirectoryFacts]) -> str:
    names = [str(each.path) for each in directories[:_NAMED_MAX]]
    return ", ".join([*names, *(["..."] if len(directories) > _NAMED_MAX else [])])


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
        "driver": IMPORTED,
        "controllers": [int(controllers or _CONTROLLER_WITHOUT_DIRECTORY)],
        "brokers": [int(broker) for broker in sorted(image.brokers)],
    }
    scenario = {"name": _RUN, "description": f"A real cluster, from {copy.directory}."}
    for name, document in (("cluster.yaml", cluster), ("scenario.yaml", scenario)):
        (target / name).write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")


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

    def write(self, copy: MetadataCopy, problems: Sequence[str]) -> None:
        """Writes everything that a metadata log records, and the uncertain parts.

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
        problem = "; ".join(["it was imported: nobody saw what its clients did", *problems])
        self._harness.add(RunEnded(cause_id=_CAUSE, problem=problem))
        self._harness.close()

    def _replay(self, dated: DatedRecord, causes: Causes, directory: str) -> list[ControllerEvent]:
        record = dated.record
        if isinstance(record, OtherRecord):
            add_to(self._image, dated, directory=directory)
            return [OtherRecordCommitted(cause_id=_CAUSE, metadata_offset=dated.offset, record=record.name)]
        decision = Decision(record=record, cause=causes.of(record))
        add_to(self._image, dated, directory=directory)
        delta = self._image.pop_delta()
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
        """Returns the epochs of brokers that announced their shutdown: the log has no more about their ends."""
        return {
            broker_id: registration.broker_epoch
            for broker_id, registration in self._image.brokers.items()
            if registration.in_controlled_shutdown
        }

    def _note_incarnation(self, record: records.Record) -> None:
        if not isinstance(record, records.RegisterBrokerRecord):
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
