"""Features: what a new cluster starts with, what may be changed, and whether eligible leader replicas act.

``eligible.leader.replicas.version`` has level 0 or 1; with switch ``elr`` off only 0 is supported, so that the rule
acts where both the switch and the finalized level say so (Kafka's ``ConfigurationControlManager``).
"""

from collections.abc import Mapping, Sequence

import msgspec

from laststand.emulator.core import admin_messages, metadata_version, records
from laststand.emulator.core.controller.decision import Decision, ElrCause
from laststand.emulator.core.controller.min_isr import MIN_ISR
from laststand.emulator.core.effective_config import CLUSTER
from laststand.emulator.core.errors import ConfigError, ErrorCode
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.metadata_version import ELR_VERSION, METADATA_VERSION
from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.release import highest_level, latest_metadata_version, supported_elr_level
from laststand.emulator.core.switches import Switches
from laststand.emulator.core.types import ChangeReason, ConfigResource, FeatureUpgradeType


class FeatureOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """Answer to UpdateFeatures, and what it writes."""

    error: ErrorCode
    message: str = ""
    decisions: tuple[Decision, ...] = ()


def is_elr_enabled(image: MetadataImage, switches: Switches) -> bool:
    """Returns whether partitions keep eligible leader replicas and may have an empty ISR."""
    return min(image.feature_level(ELR_VERSION), supported_elr_level(switches)) >= 1


def bootstrap(properties: NodeProperties, switches: Switches) -> tuple[Decision, ...]:
    """Returns the first records of a new cluster, whose ``metadata.version`` is one that the controller's release has.

    Raises:
        ConfigError: ``metadata.version`` does not exist, or is too old for the switch ``elr``.
    """
    level = min(metadata_version.level_of(properties.metadata_version), latest_metadata_version(switches))
    elr_level = supported_elr_level(switches)
    if elr_level > 0 and level < metadata_version.ELR:
        raise ConfigError(
            key=METADATA_VERSION,
            value=properties.metadata_version,
            expected=f"{metadata_version.LEVELS[metadata_version.ELR]} or later with switch elr on",
        )
    decisions = [Decision(record=records.FeatureLevelRecord(name=METADATA_VERSION, feature_level=level))]
    if elr_level > 0:
        decisions.append(Decision(record=records.FeatureLevelRecord(name=ELR_VERSION, feature_level=elr_level)))
        decisions.append(_set_cluster_min_isr(properties))
    return tuple(decisions)


def update_features(
    image: MetadataImage,
    properties: NodeProperties,
    switches: Switches,
    updates: Sequence[admin_messages.FeatureUpdate],
    *,
    is_left_over_ignored: bool,
) -> FeatureOutcome:
    """Decides on UpdateFeatures: all updates, or none and the first problem (Kafka's ``FeatureControlManager``).

    If one feature requires another, the other may be in the same request, in either order.

    Args:
        image: the committed state.
        properties: static configuration of the controller's node.
        switches: the rules; they decide which features exist.
        updates: the requested levels.
        is_left_over_ignored: whether an ELR that is left over after a downgrade is ignored.
    """
    wanted = {update.feature: update.max_version_level for update in updates}
    if len(wanted) < len(updates):
        return FeatureOutcome(error=ErrorCode.INVALID_REQUEST, message="a feature is named twice")
    levels = {**image.features, **wanted}
    decisions: list[Decision] = []
    for update in updates:
        problem = _update_problem(image, switches, update) or _dependency_problem(levels, update)
        if problem is not None:
            return problem
        record = records.FeatureLevelRecord(name=update.feature, feature_level=update.max_version_level)
        decisions.append(Decision(record=record))
        if update.feature == ELR_VERSION and update.max_version_level > image.feature_level(ELR_VERSION):
            decisions += _normalize_min_isr(image, properties)
            decisions += _forget_left_over(image) if is_left_over_ignored else []
    return FeatureOutcome(error=ErrorCode.NONE, decisions=tuple(decisions))


def describe_features(image: MetadataImage, switches: Switches) -> tuple[admin_messages.DescribedFeature, ...]:
    """Returns every feature of this program, by name, with the levels that the controller's release has."""
    ranges = sorted(metadata_version.BROKER_FEATURES, key=lambda feature: feature.name)
    return tuple(
        admin_messages.DescribedFeature(
            name=feature.name,
            min_supported_version=feature.min_supported_version,
            max_supported_version=highest_level(switches, feature.name),
            finalized_version=image.feature_level(feature.name),
        )
        for feature in ranges
    )


def _update_problem(
    image: MetadataImage, switches: Switches, update: admin_messages.FeatureUpdate
) -> FeatureOutcome | None:
    name, level, current = update.feature, update.max_version_level, image.feature_level(update.feature)
    if name == ELR_VERSION and level == 1 and level > supported_elr_level(switches):
        return FeatureOutcome(error=ErrorCode.UNSUPPORTED_VERSION, message=f"{name} {level} needs switch elr on")
    if not _is_known_level(switches, name, level):
        message = f"there is no level {level} of feature {name!r}"
        return FeatureOutcome(error=ErrorCode.INVALID_UPDATE_VERSION, message=message)
    if not _is_direction_allowed(current, level, update.upgrade_type):
        message = f"{name} from {current} to {level} is no {update.upgrade_type.value}"
        return FeatureOutcome(error=ErrorCode.INVALID_UPDATE_VERSION, message=message)
    for broker in image.brokers.values():
        if not broker.supports(name, level):
            message = f"broker {broker.broker_id} does not support level {level} of feature {name!r}"
            return FeatureOutcome(error=ErrorCode.INVALID_UPDATE_VERSION, message=message)
    return None


def _dependency_problem(levels: Mapping[str, int], update: admin_messages.FeatureUpdate) -> FeatureOutcome | None:
    if levels.get(ELR_VERSION, 0) > 0 and levels.get(METADATA_VERSION, 0) < metadata_version.ELR:
        needed = metadata_version.LEVELS[metadata_version.ELR]
        message = f"{update.feature} {update.max_version_level}: {ELR_VERSION} 1 needs {METADATA_VERSION} {needed}"
        return FeatureOutcome(error=ErrorCode.INVALID_UPDATE_VERSION, message=message)
    return None


def _is_known_level(switches: Switches, name: str, level: int) -> bool:
    return any(
        feature.name == name and feature.min_supported_version <= level <= highest_level(switches, name)
        for feature in metadata_version.BROKER_FEATURES
    )


def _is_direction_allowed(current: int, level: int, upgrade_type: FeatureUpgradeType) -> bool:
    if level < current:
        return upgrade_type is not FeatureUpgradeType.UPGRADE
    return level == current or upgrade_type is FeatureUpgradeType.UPGRADE


def _normalize_min_isr(image: MetadataImage, properties: NodeProperties) -> list[Decision]:
    # KAFKA-18062: with ELR on, min ISR must not differ from one broker to the next.
    decisions = []
    if image.config(ConfigResource.BROKER, CLUSTER, MIN_ISR) is None:
        decisions.append(_set_cluster_min_isr(properties))
    for name in image.config_names(ConfigResource.BROKER):
        if name != CLUSTER and image.config(ConfigResource.BROKER, name, MIN_ISR) is not None:
            record = records.ConfigRecord(resource=ConfigResource.BROKER, resource_name=name, name=MIN_ISR, value=None)
            decisions.append(Decision(record=record))
    return decisions


def _forget_left_over(image: MetadataImage) -> list[Decision]:
    # What the downgrade left and no change has removed since is older than whatever happened without the feature: a
    # member may have restarted uncleanly without being removed. KIP-966 is silent about the way back.
    is_left = any(state.elr or state.last_known_elr for state in image.partitions.values())
    cause = ElrCause(reason=ChangeReason.FEATURES_CHANGED)
    return [Decision(record=records.ClearElrRecord(topic_id=None), cause=cause)] if is_left else []


def _set_cluster_min_isr(properties: NodeProperties) -> Decision:
    value = str(properties.min_insync_replicas)
    record = records.ConfigRecord(resource=ConfigResource.BROKER, resource_name=CLUSTER, name=MIN_ISR, value=value)
    return Decision(record=record)
