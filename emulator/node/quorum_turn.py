"""A turn of one of several controllers without its network, and its disk.

As in ``controller_turn``, the log is synced once for a turn, and messages are sent after all file changes of the turn.
Effects that wait for a commit are released by the turn that commits.
"""

import logging
import secrets
from collections.abc import Callable, Sequence
from typing import Final, assert_never

from msgspec.structs import replace

from laststand.emulator.core import effects
from laststand.emulator.core.controller.controller import Controller
from laststand.emulator.core.events import ControllerEvent, Event
from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.quorum import effects as quorum_effects
from laststand.emulator.core.quorum.batches import KRaftVersion, QuorumBatch
from laststand.emulator.core.quorum.inputs import LoadedQuorum, LogSynced
from laststand.emulator.core.quorum.settings import QuorumSettings, formatted, initial_directory_id, settings_of
from laststand.emulator.core.quorum.voter_set import DirectoryId, ReplicaKey
from laststand.emulator.core.quorum_controller.effects import (
    QuorumControllerEffect,
    RecordFacts,
    ReportFault,
    ServeMetadata,
)
from laststand.emulator.core.quorum_controller.quorum_controller import QuorumController, QuorumControllerInput
from laststand.emulator.core.uuid_text import uuid_text
from laststand.emulator.kafka.metadata_values import KafkaValues
from laststand.emulator.node.config import NodeConfig
from laststand.emulator.node.controller_turn import Departure
from laststand.emulator.node.metadata_journal import open_metadata_directory
from laststand.emulator.storage.filesystem import FileSystem
from laststand.emulator.storage.meta_properties import MetaProperties, format_directory
from laststand.emulator.storage.metadata_log import MetadataLog
from laststand.emulator.storage.quorum_state import read_quorum_state, write_quorum_state

_log: Final = logging.getLogger(__name__)

_STOP_TIMEOUT_MS: Final = 500
"""For the last controllers of a cluster that is stopped, which nobody succeeds. Another is elected within 0.1 s."""

_SEED_BITS: Final = 62
_UUID_BYTES: Final = 16


class QuorumTurns:
    """One of several controllers, its metadata log, and its file of epoch and vote.

    Args:
        config: of the node.
        filesystem: of its disk.
        now_ms: by the node's clock.
        unreported: returns those events of committed records that no controller has written down yet.

    Raises:
        StorageError: the disk is another node's, or cannot be read.
        IllegalQuorumState: the files on the disk contradict each other.
    """

    def __init__(
        self,
        config: NodeConfig,
        filesystem: FileSystem,
        *,
        now_ms: int,
        unreported: Callable[[Sequence[ControllerEvent]], Sequence[ControllerEvent]],
    ) -> None:
        data_dir = config.data_dirs[0]
        fresh = MetaProperties(
            cluster_id=config.cluster_id,
            node_id=config.node_id,
            directory_id=_fresh_directory_id(config),
        )
        directory_id = DirectoryId(format_directory(filesystem, data_dir, fresh).directory_id)
        self._directory = open_metadata_directory(filesystem, data_dir)
        self._filesystem = filesystem
        self._log = MetadataLog(filesystem, self._directory)
        self._unreported = unreported
        loaded = LoadedQuorum(
            election=read_quorum_state(filesystem, self._directory),
            batches=tuple(self._log.pop_recovered()),
            seed=secrets.randbits(_SEED_BITS),
        )
        properties = config.node_properties()
        self._settings = _settings(config, properties, directory_id, loaded.batches)
        self._controller = QuorumController(
            self._settings, loaded, properties, config.switches, now_ms=now_ms, values=KafkaValues()
        )
        self._unsynced: quorum_effects.SyncMetadata | None = None
        self._facts: list[ControllerEvent] = []

    @property
    def active(self) -> Controller | None:
        """The controller, while this node leads."""
        return self._controller.active

    def next_deadline_ms(self) -> int | None:
        """Returns when a timer is due."""
        return self._controller.next_deadline_ms()

    def run(self, inputs: Sequence[QuorumControllerInput], *, now_ms: int) -> tuple[list[Event], list[Departure]]:
        """Steps the inputs in order, and makes the appended records durable; see ``ControllerTurns.run``."""
        events: list[Event] = []
        departures: list[Departure] = []
        for incoming in inputs:
            self._step(incoming, events, departures, now_ms=now_ms)
        while (due := self._unsynced) is not None:
            self._unsynced = None
            self._log.sync()
            synced = LogSynced(cause_id=inputs[-1].cause_id, end_offset=due.end_offset, generation=due.generation)
            self._step(synced, events, departures, now_ms=now_ms)
        # Which of them are on record is looked up once, however many batches of others a turn commits.
        if self._facts:
            events[:0] = self._unreported(self._facts)
            self._facts = []
        return events, departures

    def _step(
        self, incoming: QuorumControllerInput, events: list[Event], departures: list[Departure], *, now_ms: int
    ) -> None:
        for effect in self._controller.step(incoming, now_ms=now_ms):
            self._execute(effect, events, departures)

    def _execute(self, effect: QuorumControllerEffect, events: list[Event], departures: list[Departure]) -> None:
        match effect:
            case quorum_effects.WriteElection(election=election, kraft_version=kraft_version):
                voters = self._settings.bootstrap_voters.node_ids
                write_quorum_state(
                    self._filesystem, self._directory, election, kraft_version=kraft_version, voters=voters
                )
            case quorum_effects.AppendBatches(batches=batches):
                for batch in batches:
                    self._log.append(batch)
            case quorum_effects.SyncMetadata():
                self._unsynced = effect
            case quorum_effects.TruncateMetadata(end_offset=end_offset):
                self._log.truncate(end_offset)
            case quorum_effects.RecordQuorumEvent(event=event):
                _log.debug("%s", event)
            case effects.RecordEvent(event=event):
                events.append(event)
            case ReportFault(failure=failure, error=error):
                _log.error("%s failed, and the controller resigns", failure.operation, exc_info=error)
                events.append(failure)
            case RecordFacts(events=facts):
                self._facts += facts
            case (
                effects.SendRequest()
                | effects.SendResponse()
                | effects.PublishMetadata()
                | effects.DrawNumber()
                | effects.StopNode()
                | ServeMetadata()
            ):
                departures.append(effect)
            case _:
                assert_never(effect)


def _fresh_directory_id(config: NodeConfig) -> str:
    """Returns the directory id of a newly formatted disk; all nodes can compute that of a node's first disk."""
    if config.incarnation == 0:
        return initial_directory_id(config.cluster_id, config.node_id)
    return uuid_text(secrets.token_bytes(_UUID_BYTES))


def _settings(
    config: NodeConfig, properties: NodeProperties, directory_id: DirectoryId, batches: Sequence[QuorumBatch]
) -> QuorumSettings:
    initial = tuple(
        ReplicaKey(node_id, initial_directory_id(config.cluster_id, node_id))
        for node_id in config.controller_ids
        if node_id not in config.standby_ids
    )
    settings = settings_of(
        properties,
        key=ReplicaKey(config.node_id, directory_id),
        cluster_id=config.cluster_id,
        rules=config.switches,
        initial=initial,
    )
    if _has_static_voters(batches):
        voters, kraft_version = formatted(initial, replace(config.switches, directory_ids=False))
        settings = replace(settings, bootstrap_voters=voters, kraft_version=kraft_version)
    return replace(settings, stop_timeout_ms=_STOP_TIMEOUT_MS)


def _has_static_voters(batches: Sequence[QuorumBatch]) -> bool:
    """Returns whether a cluster was formatted without directory ids, which a node of a later era does not change.

    With them the first batch of each log names the voters.
    """
    return bool(batches) and not any(isinstance(record, KRaftVersion) for batch in batches for record in batch.control)
