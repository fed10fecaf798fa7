"""Configurations of topics as a ZooKeeper broker keeps them."""

from laststand.emulator.core.broker.zookeeper.topic_configs import TopicConfigs
from laststand.emulator.core.types import ConfigResource

MIN_ISR = "min.insync.replicas"


def test_the_configuration_of_a_topic_that_went_is_forgotten() -> None:
    configs = TopicConfigs()
    configs.store("orders", {MIN_ISR: "2"})
    configs.store("payments", {})
    assert configs.config(ConfigResource.TOPIC, "orders", MIN_ISR) == "2"
    assert configs.config(ConfigResource.BROKER, "orders", MIN_ISR) is None
    configs.retain({"payments", "parcels"})
    assert not configs.is_known("orders")
    assert configs.config(ConfigResource.TOPIC, "orders", MIN_ISR) is None
    assert configs.is_known("payments")
    assert not configs.is_known("parcels")
