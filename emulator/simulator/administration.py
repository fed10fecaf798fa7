"""What an administrator asks of the controller while a plan is played. Nobody waits for the answers."""

from emulator.core.admin_messages import (
    AlterableConfig,
    AlterConfigsResource,
    AlterPartitionReassignmentsRequest,
    ConfigOperation,
    CreatableTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    FeatureUpdate,
    IncrementalAlterConfigsRequest,
    ReassignablePartition,
    UpdateFeaturesRequest,
)
from emulator.core.controller.min_isr import MIN_ISR
from emulator.core.metadata_version import ELR_VERSION
from emulator.core.types import BrokerId, ConfigResource, FeatureUpgradeType, TopicId, TopicPartition
from emulator.simulator.cluster import SimulatedCluster
from emulator.simulator.nodes import CONTROLLER


def set_min_isr(cluster: SimulatedCluster, topic: str, value: int) -> None:
    """Asks for another ``min.insync.replicas``."""
    config = AlterableConfig(name=MIN_ISR, operation=ConfigOperation.SET, value=str(value))
    resource = AlterConfigsResource(resource=ConfigResource.TOPIC, resource_name=topic, configs=(config,))
    cluster.ask(CONTROLLER, IncrementalAlterConfigsRequest(resources=(resource,)), cause=f"min-isr-{topic}")


def reassign(cluster: SimulatedCluster, name: TopicPartition, replicas: tuple[BrokerId, ...]) -> None:
    """Asks to move a partition; without replicas, to leave it where it was."""
    moved = ReassignablePartition(topic=name.topic, partition=name.partition, replicas=replicas or None)
    cluster.ask(CONTROLLER, AlterPartitionReassignmentsRequest(partitions=(moved,)), cause=f"reassign-{name}")


def recreate_topic(cluster: SimulatedCluster, name: str) -> None:
    """Asks to delete a topic, and to create one of its name with its replicas and its configuration."""
    states = [state for partition, state in sorted(cluster.image.partitions.items()) if partition.topic == name]
    topic = CreatableTopic(
        name=name,
        topic_id=TopicId(f"id-of-{name}-{cluster.steps}"),
        assignments=tuple(state.replicas for state in states),
        configs=tuple(sorted(cluster.image.configs(ConfigResource.TOPIC, name).items())),
    )
    cluster.ask(CONTROLLER, DeleteTopicsRequest(topics=(name,)), cause=f"delete-{name}")
    cluster.ask(CONTROLLER, CreateTopicsRequest(topics=(topic,)), cause=f"create-{name}")


def set_elr_feature(cluster: SimulatedCluster, level: int) -> None:
    """Asks for another level of ``eligible.leader.replicas.version``."""
    is_higher = level > cluster.image.feature_level(ELR_VERSION)
    update = FeatureUpdate(
        feature=ELR_VERSION,
        max_version_level=level,
        upgrade_type=FeatureUpgradeType.UPGRADE if is_higher else FeatureUpgradeType.SAFE_DOWNGRADE,
    )
    cluster.ask(CONTROLLER, UpdateFeaturesRequest(feature_updates=(update,)), cause=f"elr-feature-{level}")
