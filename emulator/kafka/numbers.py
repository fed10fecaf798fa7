"""Kafka's numbers for values of the core: of members of closed sets, and -1 for ``None``."""

from typing import Final

from laststand.emulator.core.admin_messages import ConfigOperation
from laststand.emulator.core.types import BrokerId, ConfigResource, FeatureUpgradeType, LeaderEpoch, NodeId, Offset

RESOURCE_NUMBERS: Final = {ConfigResource.TOPIC: 2, ConfigResource.BROKER: 4}
"""Kafka's ``ConfigResource.Type``."""

RESOURCES: Final = {number: resource for resource, number in RESOURCE_NUMBERS.items()}

OPERATION_NUMBERS: Final = {
    ConfigOperation.SET: 0,
    ConfigOperation.DELETE: 1,
    ConfigOperation.APPEND: 2,
    ConfigOperation.SUBTRACT: 3,
}
"""Kafka's ``AlterConfigOp.OpType``."""

OPERATIONS: Final = {number: operation for operation, number in OPERATION_NUMBERS.items()}

UPGRADE_NUMBERS: Final = {
    FeatureUpgradeType.UPGRADE: 1,
    FeatureUpgradeType.SAFE_DOWNGRADE: 2,
    FeatureUpgradeType.UNSAFE_DOWNGRADE: 3,
}
"""Kafka's ``FeatureUpdate.UpgradeType``."""

UPGRADES: Final = {number: upgrade for upgrade, number in UPGRADE_NUMBERS.items()}

NONE: Final = -1
"""Stands for ``None``; as a replica id, for a client."""


def number_of(value: int | None) -> int:
    """Returns a number in Kafka's form: -1 for none."""
    return NONE if value is None else value


def broker_or_none(number: int) -> BrokerId | None:
    """Returns a broker's id; ``None`` for Kafka's -1."""
    return None if number == NONE else BrokerId(NodeId(number))


def leader_epoch_or_none(number: int) -> LeaderEpoch | None:
    """Returns a leader epoch; ``None`` for a negative number."""
    return None if number < 0 else LeaderEpoch(number)


def offset_or_none(number: int) -> Offset | None:
    """Returns an offset; ``None`` for a negative number."""
    return None if number < 0 else Offset(number)
