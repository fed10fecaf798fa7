"""What a ZooKeeper broker knows of the configuration of topics, and how it reads it."""

import pytest

from emulator.core.broker.topic_configs import TopicConfigs, read_topic_config
from emulator.core.types import ConfigResource
from emulator.core.zookeeper.identifiers import Zxid
from emulator.core.zookeeper.nodes.small_nodes import encode_config
from emulator.core.zookeeper.operations import (
    DataRead,
    GetData,
    NodeStat,
    OperationAnswer,
    OperationFailed,
    ZooKeeperFailure,
)

CONFIG = {"min.insync.replicas": "2"}


def test_a_value_is_known_of_the_topic_that_was_read_and_of_no_other_resource() -> None:
    configs = TopicConfigs()
    assert not configs.is_known("orders")
    configs.take("orders", CONFIG)
    assert configs.is_known("orders")
    assert configs.config(ConfigResource.TOPIC, "orders", "min.insync.replicas") == "2"
    assert configs.config(ConfigResource.TOPIC, "orders", "retention.ms") is None
    assert configs.config(ConfigResource.TOPIC, "payments", "min.insync.replicas") is None
    assert configs.config(ConfigResource.BROKER, "orders", "min.insync.replicas") is None


@pytest.mark.parametrize(
    ("answer", "config"),
    [
        (DataRead(data=encode_config(CONFIG), stat=NodeStat(czxid=Zxid(1), mzxid=Zxid(1))), CONFIG),
        (OperationFailed(ZooKeeperFailure.NO_NODE), {}),
    ],
)
def test_a_topic_is_read_with_a_watch_on_its_node(answer: OperationAnswer, config: dict[str, str]) -> None:
    program = read_topic_config("orders")
    assert next(program) == (GetData(path="/config/topics/orders", is_watched=True),)
    with pytest.raises(StopIteration) as ended:
        program.send((answer,))
    assert ended.value.value == config
