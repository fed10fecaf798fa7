"""A controller's process does not open a metadata log whose feature levels its release lacks."""

from typing import Final, cast

import pytest

from laststand.chaos.process.ending import note_crash
from laststand.chaos.process.harness_log import HarnessLog
from laststand.emulator.cluster.child import EndCause, ProcessEnd
from laststand.emulator.cluster.process_cluster import ProcessCluster
from laststand.emulator.core import inputs
from laststand.emulator.core.controller.controller import Controller
from laststand.emulator.core.eras import node_rules
from laststand.emulator.core.errors import UnsupportedFeatureError
from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.types import CauseId, NodeId
from laststand.emulator.node.controller_turn import ControllerTurns
from laststand.emulator.node.metadata_journal import MetadataJournal
from laststand.emulator.storage.log_directory import make_log_directory
from tests.memory_filesystem import MemoryFileSystem

DATA_DIR: Final = "/data"


def opened(filesystem: MemoryFileSystem, era: str) -> ControllerTurns:
    make_log_directory(filesystem, DATA_DIR)
    controller = Controller(NodeProperties(), node_rules(era), "cluster", NodeId(100))
    return ControllerTurns(controller, MetadataJournal(filesystem, DATA_DIR))


def test_a_controller_opens_a_log_whose_levels_it_has() -> None:
    filesystem = MemoryFileSystem()
    opened(filesystem, "kafka-4.2").run([inputs.Started(cause_id=CauseId("test"))], now_ms=0)
    assert opened(filesystem, "kip-966").active.image.features
    with pytest.raises(UnsupportedFeatureError, match=r"knows none above 0$"):
        opened(filesystem, "kafka-4.2,elr=off")
    with pytest.raises(UnsupportedFeatureError):
        opened(filesystem, "kafka-3.9")


def test_what_a_process_said_last_is_told_where_it_ended_by_itself() -> None:
    end = ProcessEnd(
        name="client",
        pid=1,
        cause=EndCause.UNEXPECTED,
        exit_code=1,
        signal_number=None,
        stderr_tail=("a line", "the metadata log has metadata.version 4.2-IV1"),
    )
    told = note_crash(cast("ProcessCluster", None), cast("HarnessLog", None), "client", end)
    assert told == (
        "process client ended by itself (unexpected, exit code 1): the metadata log has metadata.version 4.2-IV1"
    )
