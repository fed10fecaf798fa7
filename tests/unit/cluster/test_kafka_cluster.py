"""The log directories of Kafka's nodes, as they are formatted before their first start."""

from pathlib import Path

import pytest

from laststand.emulator.cluster.kafka_cluster import format_log_directory
from laststand.emulator.cluster.kafka_distribution import KafkaDistribution
from laststand.emulator.core.types import NodeId
from laststand.emulator.plan.nodes import CONTROLLER

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
