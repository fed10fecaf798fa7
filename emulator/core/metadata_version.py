"""``metadata.version``: which record fields and rules a cluster has finalized.

A level is Kafka's own feature level: the index into ``LEVELS`` (``MetadataVersion.java``). The controller looks at
four of them: RECOVERING exists from 3.2-IV0 on (KIP-704), a shrinking ISR stops bumping the leader epoch at 3.6-IV0
(KAFKA-15021), metadata transactions exist from 3.6-IV1 on (KIP-868), and from 4.0-IV1 on eligible leader replicas can
be enabled and clean shutdowns be proved (KIP-966).
"""

from typing import Final

from laststand.emulator.core import messages
from laststand.emulator.core.errors import ConfigError

METADATA_VERSION: Final = "metadata.version"
"""Name of the feature whose level says which metadata records may be written."""

ELR_VERSION: Final = "eligible.leader.replicas.version"
"""Name of the feature that turns eligible leader replicas on at level 1 (KIP-966)."""

LEVELS: Final = (
    "unset",
    "3.0-IV1",
    "3.1-IV0",
    "3.2-IV0",
    "3.3-IV0",
    "3.3-IV1",
    "3.3-IV2",
    "3.3-IV3",
    "3.4-IV0",
    "3.5-IV0",
    "3.5-IV1",
    "3.5-IV2",
    "3.6-IV0",
    "3.6-IV1",
    "3.6-IV2",
    "3.7-IV0",
    "3.7-IV1",
    "3.7-IV2",
    "3.7-IV3",
    "3.7-IV4",
    "3.8-IV0",
    "3.9-IV0",
    "4.0-IV0",
    "4.0-IV1",
    "4.0-IV2",
    "4.0-IV3",
    "4.1-IV0",
    "4.1-IV1",
    "4.2-IV0",
    "4.2-IV1",
)
"""Names by feature level; level 0 means that the feature was never finalized."""

LATEST: Final = len(LEVELS) - 1
"""The newest level: that of Apache Kafka 4.2."""

LEADER_RECOVERY: Final = LEVELS.index("3.2-IV0")
"""From this level on an unclean election marks the partition RECOVERING (KIP-704)."""

NO_BUMP_ON_SHRINK: Final = LEVELS.index("3.6-IV0")
"""From this level on a shrinking ISR leaves the leader epoch alone (KAFKA-15021)."""

TRANSACTIONS: Final = LEVELS.index("3.6-IV1")
"""From this level on there are metadata transactions (KIP-868)."""

ELR: Final = LEVELS.index("4.0-IV1")
"""From this level on ``eligible.leader.replicas.version`` may be 1 (KIP-966)."""

CLEAN_SHUTDOWN_PROOF: Final = ELR
"""From this level on a broker epoch in the clean-shutdown file proves a clean shutdown (KIP-966)."""

BROKER_FEATURES: Final = (
    messages.FeatureRange(name=METADATA_VERSION, min_supported_version=1, max_supported_version=LATEST),
    messages.FeatureRange(name=ELR_VERSION, min_supported_version=0, max_supported_version=1),
)
"""Features that brokers of this program support."""


def level_of(version: str) -> int:
    """Returns the feature level of ``3.6-IV0`` or, for a release such as ``3.6``, that of its last version.

    Raises:
        ConfigError: no such metadata version.
    """
    matches = [level for level, name in enumerate(LEVELS) if version in (name, name.partition("-")[0]) and level > 0]
    if not matches:
        raise ConfigError(key=METADATA_VERSION, value=version, expected=f"{LEVELS[1]} to {LEVELS[-1]}, or a release")
    return matches[-1]


def level_name(feature: str, level: int) -> str:
    """Returns a level as users write it: ``4.2-IV1`` for ``metadata.version``, a number for others."""
    return LEVELS[level] if feature == METADATA_VERSION and level < len(LEVELS) else str(level)
