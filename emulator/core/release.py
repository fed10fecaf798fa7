"""The protocol versions and features of the release behind a node's rules, for clusters with nodes of several eras.

A node announces the versions of its release, so that other nodes answer it as they answer that release.
"""

from typing import Final

import msgspec

from laststand.emulator.core import messages
from laststand.emulator.core.metadata_version import BROKER_FEATURES, ELR_VERSION, LATEST, LEVELS, METADATA_VERSION
from laststand.emulator.core.switches import Switches, is_of_3_9_or_before

_LATEST_OF_3_9: Final = LEVELS.index("3.9-IV0")


def supported_elr_level(switches: Switches) -> int:
    """Returns the highest level of ``eligible.leader.replicas.version`` that a release has; 0 before it existed."""
    return 1 if switches.elr else 0


def latest_metadata_version(switches: Switches) -> int:
    """Returns a release's highest ``metadata.version``; rules without those new in 4.0 count as release 3.9."""
    return _LATEST_OF_3_9 if is_of_3_9_or_before(switches) else LATEST


def features_of(switches: Switches) -> tuple[messages.FeatureRange, ...]:
    """Returns the features that a broker registers, without those that its release does not have."""
    highest = {ELR_VERSION: supported_elr_level(switches), METADATA_VERSION: latest_metadata_version(switches)}
    return tuple(
        msgspec.structs.replace(feature, max_supported_version=highest[feature.name])
        for feature in BROKER_FEATURES
        if highest[feature.name] > 0
    )


def names_broker_epochs(switches: Switches) -> bool:
    """Returns whether a release has Fetch 15 and AlterPartition 3, which name broker epochs (KIP-903)."""
    return switches.ap_broker_epoch_check
