"""The protocol versions and features of the release behind a node's rules, for clusters with nodes of several eras.

A node says what its release says, so that others answer it as they answer that release.
"""

from laststand.emulator.core import messages
from laststand.emulator.core.metadata_version import BROKER_FEATURES, ELR_VERSION
from laststand.emulator.core.switches import Switches


def supported_elr_level(switches: Switches) -> int:
    """Returns the highest level of ``eligible.leader.replicas.version`` that a release has; 0 before it existed."""
    return 1 if switches.elr else 0


def features_of(switches: Switches) -> tuple[messages.FeatureRange, ...]:
    """Returns the features that a broker names when it registers; one that its release does not have is not named."""
    return tuple(
        feature for feature in BROKER_FEATURES if feature.name != ELR_VERSION or supported_elr_level(switches) > 0
    )


def names_broker_epochs(switches: Switches) -> bool:
    """Returns whether a release has Fetch 15 and AlterPartition 3, which name broker epochs (KIP-903)."""
    return switches.ap_broker_epoch_check
