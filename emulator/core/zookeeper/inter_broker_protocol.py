"""``inter.broker.protocol.version``: what a node of a ZooKeeper cluster sends and writes (Kafka's ``MetadataVersion``).

A rolling upgrade installs the new release first and raises the version later, so a node's release and its protocol
differ for a while: the release decides what a node understands, the protocol what it sends and does. A version is an
index into ``VERSIONS``; ``2.6`` means the last version of that release.
"""

from collections.abc import Iterable
from enum import Enum
from typing import Final, NewType

import msgspec

from laststand.emulator.core.errors import ConfigError
from laststand.emulator.core.metadata_version import LEVELS as METADATA_VERSIONS
from laststand.emulator.core.types import BrokerId, NodeId

IbpLevel = NewType("IbpLevel", int)
"""Index into ``VERSIONS``; compares as the versions do."""

PROPERTY: Final = "inter.broker.protocol.version"

VERSIONS: Final = (
    "2.1-IV0",
    "2.1-IV1",
    "2.1-IV2",
    "2.2-IV0",
    "2.2-IV1",
    "2.3-IV0",
    "2.3-IV1",
    "2.4-IV0",
    "2.4-IV1",
    "2.5-IV0",
    "2.6-IV0",
    "2.7-IV0",
    "2.7-IV1",
    "2.7-IV2",
    "2.8-IV0",
    "2.8-IV1",
    "3.0-IV0",
    *METADATA_VERSIONS[1 : METADATA_VERSIONS.index("3.9-IV0") + 1],
)


def ibp_level(version: str) -> IbpLevel:
    """Returns the level of ``2.7-IV2`` or, for a release such as ``2.7``, that of its last version.

    Raises:
        ConfigError: no such version.
    """
    matches = _levels(version)
    if not matches:
        raise ConfigError(key=PROPERTY, value=version, expected=f"{VERSIONS[0]} to {VERSIONS[-1]}, or a release")
    return IbpLevel(matches[-1])


def is_ibp(version: str) -> bool:
    """Returns whether there is such a version or release."""
    return bool(_levels(version))


def _levels(version: str) -> list[int]:
    return [level for level, name in enumerate(VERSIONS) if version in (name, name.partition("-")[0])]


def parse_ibps(text: str) -> tuple[IbpLevel, tuple[tuple[BrokerId, IbpLevel], ...]]:
    """Reads a version, and versions of single brokers: ``3.9,0:2.6,2:2.6`` is 3.9, and 2.6 on brokers 0 and 2.

    Returns:
        The version of the other brokers, and the versions of the named ones, ascending.

    Raises:
        ConfigError: no such version, another form, or a broker that is named twice.
    """
    default, *named = text.split(",")
    levels: dict[BrokerId, IbpLevel] = {}
    for each in named:
        broker, colon, version = each.partition(":")
        if not colon or not broker.isdecimal() or int(broker) in levels:
            raise ConfigError(key=PROPERTY, value=text, expected="a version, then BROKER:VERSION of single brokers")
        levels[BrokerId(NodeId(int(broker)))] = ibp_level(version)
    return ibp_level(default), tuple(sorted(levels.items()))


def format_ibps(ibp: IbpLevel, others: Iterable[tuple[BrokerId, IbpLevel]]) -> str:
    """Returns the text that ``parse_ibps`` reads."""
    return ",".join((VERSIONS[ibp], *(f"{broker_id}:{VERSIONS[level]}" for broker_id, level in others)))


LATEST: Final = ibp_level("3.9")

_BROKER_EPOCHS: Final = ibp_level("2.2-IV0")
_ADDING_AND_REMOVING_REPLICAS: Final = ibp_level("2.4-IV0")
_FLEXIBLE_VERSIONS: Final = ibp_level("2.4-IV1")
_STOP_REPLICA_EPOCHS: Final = ibp_level("2.6-IV0")
_BROKER_FEATURES: Final = ibp_level("2.7-IV0")
_ALTER_ISR: Final = ibp_level("2.7-IV2")
_TOPIC_IDS: Final = ibp_level("2.8-IV0")
_TOPIC_IDS_SENT: Final = ibp_level("2.8-IV1")
_LEADER_RECOVERY: Final = ibp_level("3.2-IV0")
_KRAFT_CONTROLLER_FIELD: Final = ibp_level("3.4-IV0")

_CONTROL_VERSIONS: Final = (
    # from,                         LeaderAndIsr, UpdateMetadata, StopReplica
    (ibp_level("2.1-IV0"), (1, 4, 0)),
    (_BROKER_EPOCHS, (2, 5, 1)),
    (_ADDING_AND_REMOVING_REPLICAS, (3, 5, 1)),
    (_FLEXIBLE_VERSIONS, (4, 6, 2)),
    (_STOP_REPLICA_EPOCHS, (4, 6, 3)),
    (_TOPIC_IDS_SENT, (5, 7, 3)),
    (_LEADER_RECOVERY, (6, 7, 3)),
    (_KRAFT_CONTROLLER_FIELD, (7, 8, 4)),
)
"""The version in which a controller speaks to brokers; ``control_versions`` has the fields of each version."""

_ALTER_PARTITION_BY_NAME: Final = 1
_ALTER_PARTITION_LATEST: Final = 3


class IsrChange(Enum):
    """The writer of a leader's ISR: the leader, or the controller."""

    ZOOKEEPER = "zookeeper"
    """The leader, into the state node; the controller hears of it by a notification."""

    ALTER_PARTITION = "alter_partition"
    """The controller, whom the leader asks (KIP-497)."""


class InterBrokerProtocol(msgspec.Struct, frozen=True):
    """The protocol features that follow from a node's version.

    Attributes:
        level: the version.
        knows_topic_ids: whether its release supports topic ids as the version requires.
    """

    level: IbpLevel = LATEST
    knows_topic_ids: bool = True

    @property
    def isr_change(self) -> IsrChange:
        """The writer of a leader's ISR: the leader, or the controller."""
        return IsrChange.ALTER_PARTITION if self.level >= _ALTER_ISR else IsrChange.ZOOKEEPER

    @property
    def leader_and_isr_version(self) -> int:
        """Version of LeaderAndIsr requests."""
        return self._control_versions[0]

    @property
    def update_metadata_version(self) -> int:
        """Version of UpdateMetadata requests."""
        return self._control_versions[1]

    @property
    def stop_replica_version(self) -> int:
        """Version of StopReplica requests."""
        return self._control_versions[2]

    @property
    def _control_versions(self) -> tuple[int, int, int]:
        return next(versions for since, versions in reversed(_CONTROL_VERSIONS) if self.level >= since)

    @property
    def sends_broker_epochs(self) -> bool:
        """ControlledShutdown has the epoch of the broker that asks (KIP-380)."""
        return self.level >= _BROKER_EPOCHS

    @property
    def makes_topic_ids(self) -> bool:
        """The controller gives topics ids (KIP-516)."""
        return self.knows_topic_ids and self.level >= _TOPIC_IDS

    @property
    def sends_topic_ids(self) -> bool:
        """LeaderAndIsr and UpdateMetadata have topic ids besides the names."""
        return self.knows_topic_ids and self.level >= _TOPIC_IDS_SENT

    @property
    def records_leader_recovery(self) -> bool:
        """State nodes and LeaderAndIsr have RECOVERING after an unclean election (KIP-704)."""
        return self.level >= _LEADER_RECOVERY

    @property
    def broker_node_version(self) -> int:
        """Version of a broker's node; 5 has its features."""
        return 5 if self.level >= _BROKER_FEATURES else 4

    def alter_partition_version(self, *, are_topic_ids_known: bool, controller_max_version: int) -> int:
        """Returns the version of a leader's request; it names topics unless the ids of all are known.

        Args:
            are_topic_ids_known: of all partitions in the request.
            controller_max_version: the highest that the controller understands.
        """
        own_max = _ALTER_PARTITION_LATEST if are_topic_ids_known else _ALTER_PARTITION_BY_NAME
        return min(own_max, controller_max_version)

    def sends_recovery_state(self, alter_partition_version: int) -> bool:
        """Returns whether a request of that version has the leader's recovery state; else it reads as RECOVERED."""
        return self.records_leader_recovery and alter_partition_version >= _ALTER_PARTITION_BY_NAME
