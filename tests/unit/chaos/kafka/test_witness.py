"""Event files of Kafka's nodes, as the harness writes them."""

from pathlib import Path

import pytest

from laststand.chaos.kafka.witness import NodeWitness
from laststand.emulator.cluster.child import EndCause
from laststand.emulator.cluster.layout import ClusterLayout
from laststand.emulator.core import events
from laststand.emulator.core.switches import era_switches
from laststand.emulator.core.types import BrokerId, CauseId, MessageFate, NodeId, Way
from laststand.emulator.plan.nodes import CONTROLLER
from laststand.emulator.storage.line_file import line_files, read_texts

BROKER = NodeId(1)
LINES = (
    "Creating new partition orders-0 with topic id JU6m_a2wR9ey4wFS3SVhKg.\n"
    "Leader orders-0 with topic id Some(JU6m_a2wR9ey4wFS3SVhKg) starts at leader epoch 1 from offset 110 with "
    "partition epoch 2, high watermark 100, ISR [0,1], adding replicas [] and removing replicas [] .\n"
)


@pytest.fixture
def layout(tmp_path: Path) -> ClusterLayout:
    (tmp_path / "events").mkdir()
    return ClusterLayout(
        run="unit",
        directory=tmp_path,
        controller_ids=(CONTROLLER,),
        broker_ids=(BrokerId(BROKER),),
        switches=era_switches("kafka-4.2"),
        properties=(),
        toxiproxy=None,
    )


def touched(target: NodeId) -> events.MessageIntercepted:
    return events.MessageIntercepted(
        cause_id=CauseId("unit"), source=NodeId(0), target=target, api="Fetch", way=Way.REQUEST, fate=MessageFate.HELD
    )


def told_of(layout: ClusterLayout, node_id: NodeId) -> list[str]:
    (path,) = line_files(layout.directory / "events", f"{node_id}-*")
    lines, _ = read_texts(path, begin=0)
    kinds = ("NodeStarted", "MessageIntercepted", "BecameLeader", "FileSealed")
    return [next(kind for kind in kinds if f'"{kind}"'.encode() in line) for line in lines.splitlines()]


def test_a_message_to_a_node_is_reported_at_once(layout: ClusterLayout) -> None:
    witness = NodeWitness(layout)
    witness.started(CONTROLLER, 0)
    witness.intercepted(touched(CONTROLLER))
    assert told_of(layout, CONTROLLER) == ["NodeStarted", "MessageIntercepted"]


def test_what_a_node_got_before_its_registration_is_reported_after_its_start(layout: ClusterLayout) -> None:
    witness = NodeWitness(layout)
    witness.started(BROKER, 0)
    witness.intercepted(touched(BROKER))
    witness.ended(BROKER, 0, EndCause.KILLED)
    witness.intercepted(touched(BROKER))
    assert told_of(layout, BROKER) == ["NodeStarted", "MessageIntercepted", "FileSealed"]


def test_what_a_broker_prints_is_reported_of_its_process_alone(layout: ClusterLayout) -> None:
    printed = layout.node_log(BROKER)
    printed.parent.mkdir(parents=True)
    printed.write_text(LINES)
    witness = NodeWitness(layout)
    witness.started(BROKER, 0)
    witness.poll()
    with printed.open("a") as file:
        file.write(LINES)
    witness.poll()
    witness.ended(BROKER, 0, EndCause.KILLED)
    assert told_of(layout, BROKER) == ["NodeStarted", "BecameLeader", "FileSealed"]


def test_what_a_broker_printed_last_is_reported_before_its_end(layout: ClusterLayout) -> None:
    witness = NodeWitness(layout)
    witness.started(BROKER, 0)
    printed = layout.node_log(BROKER)
    printed.parent.mkdir(parents=True)
    printed.write_text(LINES)
    witness.ended(BROKER, 0, EndCause.KILLED)
    assert told_of(layout, BROKER) == ["NodeStarted", "BecameLeader", "FileSealed"]
