"""The controllers in what is told and drawn of a run in a cluster with ZooKeeper."""

from pathlib import Path

import msgspec
import pytest

from laststand.emulator.core import events
from laststand.emulator.core.types import CauseId, MetadataOffset, ZnodeWrite
from laststand.emulator.report.figure import draw
from laststand.emulator.report.run_files import ReportedRun
from laststand.emulator.report.text_picture import text_picture
from laststand.emulator.report.words import NodeNames
from laststand.emulator.verification.facts.controller_terms import CONTROLLER_NODE, state_node
from laststand.emulator.verification.story.run import BrokenLink
from tests.unit.report.judged_runs import lost
from tests.verification.run_builder import RunBuilder

SERVER = 100
FIRST, SECOND = 1, 2
"""Brokers that are controllers: the second from leader epoch 2 on."""


@pytest.fixture(scope="module")
def loss(tmp_path_factory: pytest.TempPathFactory) -> ReportedRun:
    """The demo, whose server tells who wrote: the leader itself wrote the last ISR."""
    note = RunBuilder.note

    def session_of(broker: int) -> int:
        return 10 + broker

    def written(run: RunBuilder, offset: MetadataOffset, path: str, write: ZnodeWrite, broker: int) -> None:
        event = events.ZnodeWritten(
            cause_id=CauseId("zookeeper"), metadata_offset=offset, path=path, write=write, session_id=session_of(broker)
        )
        note(run, SERVER, event)

    def note_writes(run: RunBuilder, node: int, event: events.Event) -> None:
        match event:
            case events.BrokerRegistered(broker_id=broker_id, metadata_offset=offset):
                written(run, offset, f"/brokers/ids/{broker_id}", ZnodeWrite.CREATED, broker_id)
            case events.PartitionChanged(metadata_offset=offset, leader_epoch=leader_epoch):
                is_own = leader_epoch == 4 and len(event.isr) > 1
                if leader_epoch in (0, 2):
                    if leader_epoch == 2:
                        written(run, offset, CONTROLLER_NODE, ZnodeWrite.DELETED, FIRST)
                    elected = FIRST if leader_epoch == 0 else SECOND
                    written(run, offset, CONTROLLER_NODE, ZnodeWrite.CREATED, elected)
                writer = 0 if is_own else FIRST if leader_epoch < 2 else SECOND
                written(run, offset, state_node(event.topic, event.partition), ZnodeWrite.DATA_CHANGED, writer)
            case _:
                pass
        note(run, node, event)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunBuilder, "note", note_writes)
        return lost(tmp_path_factory.mktemp("controllers") / "story" / "1")


def test_a_story_names_the_controller_and_its_epoch(loss: ReportedRun) -> None:
    told = [line.text for each in loss.verdict.losses for line in each.story]
    [election] = {text for text in told if "elected broker" in text}
    assert election.startswith("Broker 2, controller in epoch 2, elected broker 2 in epoch 4 (elected as a member of")
    assert election.endswith("with a log that ended at 0; ISR [2].")


def test_states_name_their_writer(loss: ReportedRun) -> None:
    first, *_, last = loss.verdict.leaders
    assert first.startswith("orders-0 epoch 0: leader 0, ISR [0, 1, 2], written by broker 1, controller in epoch 1 (")
    assert "written by broker 0, the leader itself (" in last


def test_the_server_is_called_by_its_kind(loss: ReportedRun) -> None:
    story = loss.story
    assert story is not None
    assert NodeNames(story).name(SERVER) == "the controller"
    processes = tuple(
        msgspec.structs.replace(each, role="zookeeper") if each.node == SERVER else each for each in story.processes
    )
    names = NodeNames(msgspec.structs.replace(story, processes=processes))
    assert [names.name(node) for node in (SERVER, 1)] == ["ZooKeeper", "broker 1"]


def test_a_client_of_kafka_has_its_name(loss: ReportedRun) -> None:
    assert loss.story is not None
    story = msgspec.structs.replace(loss.story, kafka_clients={1001: "app"})
    assert NodeNames(story).link(BrokenLink(source=1001, target=0)) == "client app to broker 0"


def test_terms_are_drawn_above_the_leader(loss: ReportedRun) -> None:
    story = loss.story
    assert story is not None
    assert [(term.broker, term.controller_epoch) for term in story.controllers] == [(FIRST, 1), (SECOND, 2)]
    svg = draw(loss.verdict, story.partitions[0], story, prefix="a").svg
    assert "broker 2 is elected controller, controller epoch 2" in svg
    assert "; written by broker 2, controller in epoch 2" in svg
    rows = text_picture(loss.verdict, story.partitions[0], story).splitlines()
    [controllers] = [row.split(maxsplit=1)[1] for row in rows if row.startswith("controller ")]
    assert "1" in controllers
    assert controllers.endswith("2")


def test_a_kraft_cluster_has_no_such_lane(tmp_path: Path) -> None:
    kraft = lost(tmp_path / "story" / "1")
    assert kraft.story is not None
    assert kraft.story.controllers == ()
    assert "controller epoch" not in draw(kraft.verdict, kraft.story.partitions[0], kraft.story, prefix="a").svg
    rows = text_picture(kraft.verdict, kraft.story.partitions[0], kraft.story).splitlines()
    assert not [row for row in rows if row.startswith("controller")]
