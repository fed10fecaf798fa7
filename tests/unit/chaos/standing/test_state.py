"""The state that a supervisor leaves to the next one, and what the next one finds."""

from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from laststand.chaos.process.harness_log import HarnessLog
from laststand.chaos.standing.groups import GroupFile
from laststand.chaos.standing.link import NoClusterError, find_standing, not_connected
from laststand.chaos.standing.listing import ClusterState, list_clusters
from laststand.chaos.standing.order import ORDER_FILE, StandingOrder, write_order
from laststand.chaos.standing.resumption import UnrecordedProcess, find_leftovers, find_unrecorded
from laststand.chaos.standing.state import Ended, StandingState, boot_id, new_state, read_state, write_state
from laststand.emulator.core.errors import ConfigError
from laststand.emulator.core.events import ClientStarted, IncarnationEnd, NodeStopped
from laststand.emulator.core.switches import Switches
from laststand.emulator.core.types import CauseId, NodeId, Offset, TopicPartition
from laststand.emulator.node.event_writer import EventWriter
from laststand.emulator.plan.drivers import DriverName


def state(*, boot: str | None = None, step: str | None = None, ended: Ended | None = None) -> StandingState:
    return StandingState(
        incarnation=0,
        pid=1,
        boot_id=boot_id() if boot is None else boot,
        since=datetime(2026, 11, 22, tzinfo=UTC),
        cluster_id="c",
        ports={0: 19092},
        metrics_ports={},
        step=step,
        ended=ended,
    )


def order(directory: Path) -> StandingOrder:
    directory.mkdir(parents=True)
    made = StandingOrder(
        directory=str(directory), brokers=1, era="kip-966", switches=Switches(), properties={}, seed=1, toxiproxy=None
    )
    write_order(made)
    return made


def test_a_state_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert read_state(tmp_path) is None
    written = new_state(incarnation=2, cluster_id="c", ports={100: 5}, metrics={0: 6})
    write_state(tmp_path, written)
    assert read_state(tmp_path) == written


def test_the_time_of_a_cluster_adds_up_over_its_supervisors() -> None:
    first = msgspec.structs.replace(state(), stood_s=12.5)
    second = new_state(incarnation=1, cluster_id="c", ports={}, metrics={}, before=first)
    assert (second.began, second.stood_s) == (first.since, 12.5)
    assert second.since > first.since
    third = new_state(incarnation=2, cluster_id="c", ports={}, metrics={}, before=second)
    assert third.began == first.since


def test_a_damaged_state_is_reported(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text("{}")
    with pytest.raises(ConfigError, match=r"state\.json"):
        read_state(tmp_path)


@pytest.mark.parametrize(
    ("found", "doubt"),
    [
        (state(), None),
        (state(ended=Ended.STOPPED, boot="another"), None),
        (state(step="kill: {node: 1}"), "the supervisor died while it played kill: {node: 1}"),
        (state(boot="another"), "the machine went down while the cluster stood"),
        (msgspec.structs.replace(state(ended=Ended.STOPPED), problem="before"), "before"),
    ],
)
def test_what_a_dead_supervisor_leaves_in_doubt(found: StandingState, doubt: str | None) -> None:
    told = found.doubt()
    assert told is None if doubt is None else told is not None and told.startswith(doubt)


def test_processes_without_a_recorded_end_are_found(tmp_path: Path) -> None:
    events = tmp_path / "events"
    events.mkdir()
    assert find_leftovers(tmp_path).harnesses == 0
    first = HarnessLog(events, run="r", wall_time_ns=1, driver=DriverName.PROCESS, ending=None)
    first.started(NodeId(0), 0)
    first.started(NodeId(1), 0)
    first.ended(NodeId(0), 0, IncarnationEnd.STOPPED, exit_code=0, metadata_offset=None)
    first.note(ClientStarted(cause_id=CauseId("x"), process="client-0", history_file="history/client-0.jsonl"))
    first.suspend()
    second = HarnessLog(events, run="r", wall_time_ns=2, driver=DriverName.PROCESS, ending=None, incarnation=1)
    second.started(NodeId(0), 1)
    with (events / "harness-1.jsonl").open("ab") as file:
        file.write(b'{"torn')
    found = find_leftovers(tmp_path)
    assert (found.harnesses, found.processes) == (2, ((NodeId(1), 0), (NodeId(0), 1)))
    assert found.histories == ("history/client-0.jsonl",)


def test_processes_that_were_over_before_anybody_attached_are_found_by_their_events(tmp_path: Path) -> None:
    events = tmp_path / "events"
    events.mkdir()
    for name in ("1-0.packed", "1-1.packed", "1-2.packed", "100-0.jsonl"):
        node, incarnation = map(int, name.partition(".")[0].split("-"))
        written = EventWriter(str(events / name), run="r", node_id=NodeId(node), incarnation=incarnation)
        written.add(NodeStopped(cause_id=CauseId("stop")))
        if incarnation == 0:
            written.close()
    harness = HarnessLog(events, run="r", wall_time_ns=1, driver=DriverName.DOCKER, ending=None)
    harness.started(NodeId(1), 2)
    found = find_unrecorded(tmp_path, find_leftovers(tmp_path).started)
    assert [*found] == [
        UnrecordedProcess(node_id=NodeId(1), incarnation=0, has_stopped=True),
        UnrecordedProcess(node_id=NodeId(1), incarnation=1, has_stopped=False),
        UnrecordedProcess(node_id=NodeId(100), incarnation=0, has_stopped=True),
    ]


def test_a_cluster_is_found_by_directory_store_folder_and_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    directory = tmp_path / "store/standing/blue/20261122T120000.000"
    order(directory)
    (directory.parent / "latest").symlink_to(directory.name)
    for place in (directory, directory.parent, Path("blue"), Path("store/standing/blue"), Path("store")):
        assert find_standing(place) == directory
    later = tmp_path / "store/standing/20261122T120100.000"
    order(later)
    assert find_standing(Path("store")) == later
    with pytest.raises(NoClusterError, match="laststand ps"):
        find_standing(Path("green"))


@pytest.mark.parametrize(
    ("remembered", "listed", "advice"),
    [
        (None, ClusterState.NOT_STARTED, "was taken down"),
        (state(), ClusterState.DIED, "was taken down"),
        (state(ended=Ended.STOPPED), ClusterState.STOPPED, "was stopped; start it again with: laststand start"),
        (state(ended=Ended.DOWN), ClusterState.DOWN, "was taken down; verify it with: laststand verify"),
    ],
)
def test_clusters_are_listed_with_what_they_are_doing(
    tmp_path: Path, remembered: StandingState | None, listed: ClusterState, advice: str
) -> None:
    directory = tmp_path / "standing/20261122T120000.000"
    order(directory)
    if remembered is not None:
        write_state(directory, remembered)
    (broken := tmp_path / "standing/20261122T130000.000").mkdir()
    (broken / ORDER_FILE).write_text("{")
    [found] = list_clusters(tmp_path)
    assert (found.state, found.name, found.pid) == (listed, None, None)
    assert advice in str(not_connected(directory, FileNotFoundError()))


@pytest.mark.parametrize(
    ("driver", "project", "left"),
    [
        (DriverName.PROCESS, None, "and every process of the cluster with it"),
        (DriverName.DOCKER, None, "remove them with: laststand down"),
        (DriverName.DOCKER, "blue", "until the compose project blue is taken down"),
    ],
)
def test_a_supervisor_that_is_gone_is_distinguished_from_one_that_ended(
    tmp_path: Path, driver: DriverName, project: str | None, left: str
) -> None:
    write_order(msgspec.structs.replace(order(tmp_path / "run"), driver=driver, project=project))
    text = str(not_connected(tmp_path / "run", ConnectionRefusedError()))
    assert "is gone" in text
    assert left in text
    assert "laststand start" in text


def test_positions_of_a_group_are_kept_by_partition(tmp_path: Path) -> None:
    zero, one = TopicPartition("orders", 0), TopicPartition("orders", 1)
    group = GroupFile(tmp_path, "billing")
    assert group.positions() == {}
    group.store({zero: Offset(5), one: Offset(1)})
    GroupFile(tmp_path, "billing").store({zero: Offset(7)})
    assert group.positions() == {zero: Offset(7), one: Offset(1)}
    assert GroupFile(tmp_path, "other").positions() == {}


@pytest.mark.parametrize("name", ["", "a/b", "../a", ".hidden"])
def test_a_group_has_a_name_that_is_a_files(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="--group"):
        GroupFile(tmp_path, name)


def test_damaged_positions_are_reported(tmp_path: Path) -> None:
    (tmp_path / "groups").mkdir()
    (tmp_path / "groups/g.json").write_text("[]")
    with pytest.raises(ConfigError, match="positions of a group"):
        GroupFile(tmp_path, "g").positions()
