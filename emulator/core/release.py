"""The protocol versions and features of the release behind a node's rules, for clusters with nodes of several eras.

A node announces the versions of its release, so that other nodes answer it as they answer that release.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from laststand.emulator.core import messages
from laststand.emulator.core.errors import ConfigError, UnsupportedFeatureError
from laststand.emulator.core.metadata_version import (
    BROKER_FEATURES,
    ELR,
    ELR_VERSION,
    LATEST,
    LEVELS,
    METADATA_VERSION,
    level_name,
    level_of,
)
from laststand.emulator.core.switches import Switches, is_of_3_9_or_before
from laststand.emulator.core.types import ClusterKind

_LATEST_OF_3_9: Final = LEVELS.index("3.9-IV0")


def supported_elr_level(switches: Switches) -> int:
    """Returns the highest level of ``eligible.leader.replicas.version`` that a release has; 0 before it existed."""
    return 1 if switches.elr else 0


def latest_metadata_version(switches: Switches) -> int:
    """Returns a release's highest ``metadata.version``; rules without those new in 4.0 count as release 3.9."""
    return _LATEST_OF_3_9 if is_of_3_9_or_before(switches) else LATEST


def highest_level(switches: Switches, feature: str) -> int:
    """Returns the highest level of a feature that a release has; 0 for one that it does not have."""
    highest = {ELR_VERSION: supported_elr_level(switches), METADATA_VERSION: latest_metadata_version(switches)}
    return highest.get(feature, 0)


def lacking_level(features: Mapping[str, int], switches: Switches) -> str | None:
    """Returns which finalized level the release of a controller lacks, in words; ``None`` if it has them all.

    Kafka's controllers end where they read a level that they do not have (``FeatureControlManager.replay``).

    Args:
        features: finalized levels by feature.
        switches: the rules of the controller.
    """
    for feature, level in sorted(features.items()):
        highest = highest_level(switches, feature)
        if level > highest:
            found, known = level_name(feature, level), level_name(feature, highest)
            return f"the metadata log has {feature} {found}, and this controller's release knows none above {known}"
    return None


def check_finalized(features: Mapping[str, int], switches: Switches) -> None:
    """Checks that a controller's release has every level that the metadata log has finalized.

    Raises:
        UnsupportedFeatureError: it lacks one; the process has to end.
    """
    lacking = lacking_level(features, switches)
    if lacking is not None:
        raise UnsupportedFeatureError(lacking)


def check_metadata_version(given: Mapping[str, str], switches: Switches) -> None:
    """Checks that a new cluster can begin with the ``metadata.version`` that it was given, if it was given one.

    Args:
        given: properties of every node.
        switches: the rules of its first controller.

    Raises:
        ConfigError: there is no such level, the controller's release does not have it, or it is too old for ELR.
    """
    version = given.get(METADATA_VERSION)
    if version is None or switches.kind is not ClusterKind.KRAFT:
        return
    level, latest = level_of(version), latest_metadata_version(switches)
    if level > latest:
        expected = f"{LEVELS[latest]} or earlier, as the era's release has no later one"
        raise ConfigError(key=METADATA_VERSION, value=version, expected=expected)
    if level < ELR and supported_elr_level(switches) > 0:
        raise ConfigError(key=METADATA_VERSION, value=version, expected=f"{LEVELS[ELR]} or later with switch elr on")


def features_of(switches: Switches) -> tuple[messages.FeatureRange, ...]:
    """Returns the features that a broker registers, without those that its release does not have."""
    return tuple(
        msgspec.structs.replace(feature, max_supported_version=highest)
        for feature in BROKER_FEATURES
        if (highest := highest_level(switches, feature.name)) > 0
    )


def names_broker_epochs(switches: Switches) -> bool:
    """Returns whether a release has Fetch 15 and AlterPartition 3, which name broker epochs (KIP-903)."""
    return switches.ap_broker_epoch_check
