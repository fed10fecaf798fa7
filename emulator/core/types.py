"""The vocabulary of small values: identifiers, offsets and epochs.

Each is a ``NewType`` so that mixing two of them fails the type check: that is the classic bug of this field. Absence is
``None``, never -1; the codec and the file formats translate. Offsets named ``*_end_offset`` and ``high_watermark`` are
exclusive: the next offset, not the last one.
"""

from enum import Enum, IntEnum
from typing import NamedTuple, NewType

NodeId = NewType("NodeId", int)
"""A process of the cluster: brokers are 0..N-1, controllers 100 and up."""

BrokerId = NewType("BrokerId", NodeId)
"""A node that is a broker."""

Offset = NewType("Offset", int)
"""Position of a record in a partition's log."""

LeaderEpoch = NewType("LeaderEpoch", int)
"""Rises by one with each record that carries a leader value."""

PartitionEpoch = NewType("PartitionEpoch", int)
"""Rises by one with each applied partition change."""

BrokerEpoch = NewType("BrokerEpoch", int)
"""Metadata offset at which a broker's registration was handled; strictly rising over incarnations."""

MetadataOffset = NewType("MetadataOffset", int)
"""Position of a record in the controller's metadata log."""

ProducerId = NewType("ProducerId", int)
"""Identity of an idempotent producer session."""

ProducerEpoch = NewType("ProducerEpoch", int)
"""Generation of a producer id; bumped when sequences start again at 0."""

TopicId = NewType("TopicId", str)
"""A topic's UUID, 22 characters of URL-safe base64 without padding, as Kafka prints it."""

IncarnationId = NewType("IncarnationId", str)
"""Random identity of one broker process, same form as a topic id."""

CauseId = NewType("CauseId", str)
"""What set things off: a client operation, a plan step or a timer. Travels in every request and response."""

RequestId = NewType("RequestId", int)
"""The driver's handle of a request that a node received and has yet to answer."""

CorrelationId = NewType("CorrelationId", int)
"""The core's handle of a request that a node sent and awaits the answer to."""


class TopicPartition(NamedTuple):
    """One partition of a topic, by the topic's name; prints as ``orders-0``."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class LeaderRecoveryState(IntEnum):
    """Whether an unclean election awaits the leader's recovery (KIP-704)."""

    RECOVERED = 0
    RECOVERING = 1


class Acks(IntEnum):
    """What a produce request waits for (Kafka's ``acks``)."""

    NONE = 0
    LEADER = 1
    ALL = -1


class IsolationLevel(IntEnum):
    """Which records a consumer may see."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


class ElectionType(Enum):
    """How a leader may be chosen (Kafka's ``PartitionChangeBuilder.electLeader``, and CLEAN)."""

    CLEAN = "CLEAN"
    """From ISR and ELR only; the rest is for unclean recovery, or for the administrator (KIP-966)."""

    PREFERRED = "PREFERRED"
    ONLINE = "ONLINE"
    UNCLEAN = "UNCLEAN"


class FeatureUpgradeType(Enum):
    """Which direction an UpdateFeatures request allows."""

    UPGRADE = "UPGRADE"
    SAFE_DOWNGRADE = "SAFE_DOWNGRADE"
    UNSAFE_DOWNGRADE = "UNSAFE_DOWNGRADE"
