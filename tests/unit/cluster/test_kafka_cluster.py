"""The log directories of Kafka's nodes, as they are formatted before their first start."""

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from laststand.emulator.cluster.kafka_cluster import LISTENS_WITHIN_S, KafkaCluster, KafkaHost, format_log_directory
from laststand.emulator.cluster.kafka_distribution import KafkaDistribution, KafkaProgram
from laststand.emulator.cluster.layout import ClusterLayout
from laststand.emulator.cluster.supervisor import Supervisor
from laststand.emulator.core.switches import era_switches
from laststand.emulator.core.types import BrokerId, NodeId
from laststand.emulator.kafka.metadata_log import METADATA_LOG
from laststand.emulator.plan.channels import Link
from laststand.emulator.plan.nodes import CONTROLLER, controller_ids

if TYPE_CHECKING:
    from laststand.emulator.cluster.link_messages import LinkMessages
    from laststand.emulator.cluster.toxiproxy import Toxiproxy

CLUSTER_ID = "bGFzdHN0YW5kLWxvZ3MtMQ"
FIRST_CHECKPOINT = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"


@pytest.mark.parametrize("bootstrap", ["bootstrap.checkpoint", FIRST_CHECKPOINT])
def test_a_controller_begins_with_the_bootstrap_records_of_its_version(bootstrap: str, tmp_path: Path) -> None:
    # Since KIP-1170 they are the first checkpoint of the metadata log, in a directory of their own.
    template = tmp_path / "elr-on"
    (template / bootstrap).parent.mkdir(parents=True)
    (template / bootstrap).write_bytes(b"records")
    (template / "meta.properties").write_text("cluster.id=AAAAAAAAAAAAAAAAAAAAAA\n")
    data = tmp_path / "data"
    format_log_directory(data, template=template, node_id=CONTROLLER, cluster_id=CLUSTER_ID)
    assert (data / bootstrap).read_bytes() == b"records"
    assert f"cluster.id={CLUSTER_ID}\nnode.id={CONTROLLER}\n" in (data / "meta.properties").read_text()


def test_a_broker_begins_with_its_identity_and_nothing_else(tmp_path: Path) -> None:
    texts = []
    for node_id in (NodeId(0), NodeId(1)):
        format_log_directory(tmp_path / str(node_id), template=None, node_id=node_id, cluster_id=CLUSTER_ID)
        assert [path.name for path in (tmp_path / str(node_id)).iterdir()] == ["meta.properties"]
        texts.append((tmp_path / str(node_id) / "meta.properties").read_text())
    directory_ids = [text.partition("directory.id=")[2] for text in texts]
    assert len(set(directory_ids)) == 2
    assert all(len(each.strip()) == 22 for each in directory_ids)


def test_eligible_leader_replicas_are_formatted_where_a_version_has_them(tmp_path: Path) -> None:
    newest, older = (KafkaDistribution(version=version, folder=tmp_path) for version in ("4.4.0", "3.9.1"))
    assert newest.formatted(elr=True) == tmp_path / "elr-on"
    assert newest.formatted(elr=False) == older.formatted(elr=True) == tmp_path / "elr-off"


def layout_in(directory: Path) -> ClusterLayout:
    return ClusterLayout(
        run="unit",
        directory=directory,
        controller_ids=controller_ids(3),
        broker_ids=(BrokerId(NodeId(0)),),
        switches=era_switches("kafka-4.2"),
        properties=(),
        toxiproxy=None,
    )


def program(directory: Path, java: str) -> KafkaProgram:
    return KafkaProgram(distribution=KafkaDistribution(version="4.2.0", folder=directory), java=Path(java))


async def test_a_process_that_has_ended_is_not_waited_for(tmp_path: Path) -> None:
    async with Supervisor() as supervisor:
        host = KafkaHost(supervisor, program_of=lambda _: program(tmp_path, "/bin/false"), sync_shim=None)
        await host.open(layout_in(tmp_path), on_end=lambda _: None)
        async with asyncio.timeout(LISTENS_WITHIN_S / 2):
            process = await host.start(NodeId(0), ())
        assert (await process.wait()).exit_code == 1
        await host.close()


class ThreeControllers(KafkaCluster):
    """A cluster whose nodes and proxies only write down what is done to them."""

    def __init__(self, directory: Path, *, is_followed: bool = True) -> None:
        self.done: list[str] = []
        self._is_followed = is_followed
        layout = layout_in(directory)
        super().__init__(
            layout,
            kafka=program(directory, "java"),
            rules_of=lambda _: layout.switches,
            sync_shim=None,
            messages=cast("LinkMessages", None),
            properties={},
            on_start=lambda *_: None,
            on_stop=lambda _: None,
            on_end=lambda *_: None,
            on_unexpected_end=lambda *_: None,
        )
        self.toxiproxy = cast("Toxiproxy", self)

    async def start_node(self, node_id: NodeId) -> int:
        """Starts nothing; once the last node is there, all follow controller 100."""
        self.done.append(f"start {node_id}")
        if node_id == 0 and self._is_followed:
            for controller in self.layout.controller_ids:
                log = self.layout.data_directory(controller) / METADATA_LOG
                log.mkdir(parents=True)
                (log / "quorum-state").write_text('{"leaderId":100,"leaderEpoch":1,"data_version":1}')
        return 0

    async def cut(self, links: Iterable[Link[NodeId]]) -> tuple[Link[NodeId], ...]:
        """Cuts nothing."""
        self.done.append(f"cut {' '.join(map(str, links))}")
        return ()

    async def restore(self, links: Iterable[Link[NodeId]]) -> tuple[Link[NodeId], ...]:
        """Restores nothing."""
        self.done.append(f"restore {len(tuple(links))}")
        return ()


def test_the_others_call_no_controller_until_they_follow_the_first_one(tmp_path: Path) -> None:
    cluster = ThreeControllers(tmp_path)
    asyncio.run(cluster.start())
    assert cluster.done[0] == "cut 101->100 101->102 102->100 102->101"
    assert sorted(cluster.done[1:-1]) == ["start 0", "start 100", "start 101", "start 102"]
    assert cluster.done[-1] == "restore 4"


async def test_a_leader_is_not_awaited_once_a_controller_has_ended(tmp_path: Path) -> None:
    cluster = ThreeControllers(tmp_path, is_followed=False)
    async with asyncio.timeout(LISTENS_WITHIN_S / 2):
        await cluster.start()
    assert cluster.done[-1] == "restore 4"
