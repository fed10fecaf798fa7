"""The nodes of a cluster."""

from pathlib import Path

import pytest

from laststand.emulator.cluster.layout import ClusterLayout
from laststand.emulator.core.eras import era_rules
from laststand.emulator.core.types import BrokerId, NodeId, NodeRole

CONTROLLER = NodeId(100)
BROKERS = (BrokerId(NodeId(0)), BrokerId(NodeId(1)))


@pytest.mark.parametrize(("era", "role"), [("kip-966", NodeRole.CONTROLLER), ("kafka-3.9-zk", NodeRole.ZOOKEEPER)])
def test_the_node_beside_the_brokers_is_a_controller_or_a_zookeeper_server(era: str, role: NodeRole) -> None:
    layout = ClusterLayout(
        run="run",
        directory=Path("/run"),
        controller_ids=(CONTROLLER,),
        broker_ids=BROKERS,
        switches=era_rules(era),
        properties=(),
        toxiproxy=None,
    )
    assert [layout.role_of(node) for node in layout.node_ids] == [role, NodeRole.BROKER, NodeRole.BROKER]
    assert layout.is_zookeeper(CONTROLLER) is (role is NodeRole.ZOOKEEPER)
    assert not any(map(layout.is_zookeeper, BROKERS))
