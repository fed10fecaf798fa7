"""Features: what a new cluster starts with, what may be changed, and whether eligible leader replicas act.

``eligible.leader.replicas.version`` has level 0 or 1; with switch ``elr`` off only 0 is supported, so that the rule
acts where both the switch and the finalized level say so (Kafka's ``ConfigurationControlManager``).
"""

from enum import Enum

import msgspec

from emulator.core import metadata_version
from emulator.core.controller.decision import Decision
from emulator.core.controller.min_isr import CLUSTER, MIN_ISR
from emulator.core.errors import ConfigError, ErrorCode
from emulator.core.image import MetadataImage
from emulator.core.metadata_version import ELR_VERSION, METADATA_VERSION
from emulator.core.properties import NodeProperties
from emulator.core.records import ConfigRecord, ConfigResource, FeatureLevelRecord
from emulator.core.switches import Switches


class UpgradeType(Enum):
    """Which direction an UpdateFeatures request allows."""

    UPGRADE = "UPGRADE"
    SAFE_DOWNGRADE = "SAFE_DOWNGRADE"
    UNSAFE_DOWNGRADE = "UNSAFE_DOWNGRADE"


class FeatureOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """Answer to a feature update, and what it writes."""

    error: ErrorCode
    decisions: tuple[Decision, ...] = ()


def supported_elr_level(switches: Switches) -> int:
    """Returns the highest level of ``eligible.leader.replicas.version`` that this cluster knows."""
    return 1 if switches.elr else 0


def is_elr_enabled(image: MetadataImage, switches: Switches) -> bool:
    """Whether partitions keep eligible leader replicas and may have an empty ISR."""
    return min(image.feature_level(ELR_VERSION), supported_elr_level(switches)) >= 1


def bootstrap(properties: NodeProperties, switches: Switches) -> tuple[Decision, ...]:
    """Returns the first records of a new cluster.

    Raises:
        ConfigError: ``metadata.version`` does not exist, or is too old for the switch ``elr``.
    """
    level = metadata_version.level_of(properties.metadata_version)
    elr_level = supported_elr_level(switches)
    if elr_level > 0 and level < metadata_version.ELR:
        raise ConfigError(
            key=METADATA_VERSION,
            value=properties.metadata_version,
            expected=f"{metadata_version.LEVELS[metadata_version.ELR]} or later with switch elr on",
        )
    decisions = [Decision(record=FeatureLevelRecord(name=METADATA_VERSION, feature_level=level))]
    if elr_level > 0:
        decisions.append(Decision(record=FeatureLevelRecord(name=ELR_VERSION, feature_level=elr_level)))
        decisions.append(_set_cluster_min_isr(properties))
    return tuple(decisions)


def update_feature(
    image: MetadataImage,
    properties: NodeProperties,
    switches: Switches,
    *,
    name: str,
    level: int,
    upgrade_type: UpgradeType,
) -> FeatureOutcome:
    """Decides on one entry of UpdateFeatures (Kafka's ``FeatureControlManager``)."""
    current = image.feature_level(name)
    if name == ELR_VERSION and level == 1 and level > supported_elr_level(switches):
        return FeatureOutcome(error=ErrorCode.UNSUPPORTED_VERSION)
    if not _is_known_level(name, level) or not _is_direction_allowed(current, level, upgrade_type):
        return FeatureOutcome(error=ErrorCode.INVALID_UPDATE_VERSION)
    metadata_level = level if name == METADATA_VERSION else image.feature_level(METADATA_VERSION)
    elr_level = level if name == ELR_VERSION else image.feature_level(ELR_VERSION)
    if elr_level > 0 and metadata_level < metadata_version.ELR:
        return FeatureOutcome(error=ErrorCode.INVALID_UPDATE_VERSION)
    decisions = [Decision(record=FeatureLevelRecord(name=name, feature_level=level))]
    if name == ELR_VERSION and level > current:
        decisions += _normalize_min_isr(image, properties)
    return FeatureOutcome(error=ErrorCode.NONE, decisions=tuple(decisions))


def _is_known_level(name: str, level: int) -> bool:
    return any(
        feature.name == name and feature.min_supported_version <= level <= feature.max_supported_version
        for feature in metadata_version.BROKER_FEATURES
    )


def _is_direction_allowed(current: int, level: int, upgrade_type: UpgradeType) -> bool:
    if level < current:
        return upgrade_type is not UpgradeType.UPGRADE
    return level == current or upgrade_type is UpgradeType.UPGRADE


def _normalize_min_isr(image: MetadataImage, properties: NodeProperties) -> list[Decision]:
    # KAFKA-18062: with ELR on, min ISR must not differ from one broker to the next.
    decisions = []
    if image.config(ConfigResource.BROKER, CLUSTER, MIN_ISR) is None:
        decisions.append(_set_cluster_min_isr(properties))
    for name in image.config_names(ConfigResource.BROKER):
        if name != CLUSTER and image.config(ConfigResource.BROKER, name, MIN_ISR) is not None:
            record = ConfigRecord(resource=ConfigResource.BROKER, resource_name=name, name=MIN_ISR, value=None)
            decisions.append(Decision(record=record))
    return decisions


def _set_cluster_min_isr(properties: NodeProperties) -> Decision:
    value = str(properties.min_insync_replicas)
    record = ConfigRecord(resource=ConfigResource.BROKER, resource_name=CLUSTER, name=MIN_ISR, value=value)
    return Decision(record=record)
