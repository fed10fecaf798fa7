"""What a scenario asks of the controller as an administrator would: the values of those steps.

Every one of them may say which answers are as expected (``answers``, Kafka's error names); without that only success
is. So one scenario can ask for something that one era refuses.
"""

import base64
from dataclasses import dataclass
from random import Random
from typing import TypeAlias

from emulator.core.admin_messages import CreatableTopic, RequestedElection
from emulator.core.errors import ErrorCode
from emulator.core.types import BrokerId, ConfigResource, FeatureUpgradeType, TopicId, TopicPartition


@dataclass(frozen=True, kw_only=True)
class TopicPlan:
    """A topic to create: replicas of each partition, and topic properties by Kafka's names."""

    name: str
    replicas: tuple[tuple[BrokerId, ...], ...]
    properties: tuple[tuple[str, str], ...]

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        """Its partitions in ascending order."""
        return tuple(TopicPartition(self.name, index) for index in range(len(self.replicas)))


@dataclass(frozen=True, kw_only=True)
class _Request:
    """Base of what may be refused."""

    answers: tuple[ErrorCode, ...] = (ErrorCode.NONE,)


@dataclass(frozen=True, kw_only=True)
class CreateTopic(_Request):
    """Creates a topic, perhaps one whose name another one had before."""

    topic: TopicPlan


@dataclass(frozen=True, kw_only=True)
class DeleteTopic(_Request):
    """Deletes a topic."""

    name: str


@dataclass(frozen=True, kw_only=True)
class AlterConfig(_Request):
    """Sets configuration entries, or deletes those whose value is ``None``; a broker without a name is the cluster."""

    resource: ConfigResource
    resource_name: str
    changes: tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, kw_only=True)
class ElectLeaders(_Request):
    """Asks for leaders; ``leader`` belongs to a designated election alone."""

    election: RequestedElection
    partitions: tuple[TopicPartition, ...]
    leader: BrokerId | None


@dataclass(frozen=True, kw_only=True)
class Reassign(_Request):
    """Gives a partition other replicas, the preferred one first; ``None`` cancels what is under way."""

    partition: TopicPartition
    replicas: tuple[BrokerId, ...] | None


@dataclass(frozen=True, kw_only=True)
class UpdateFeature(_Request):
    """Finalizes a feature at a level."""

    feature: str
    level: int
    upgrade_type: FeatureUpgradeType


@dataclass(frozen=True, kw_only=True)
class UnregisterBroker(_Request):
    """Has the controller forget a broker."""

    broker_id: BrokerId


Administration: TypeAlias = (
    CreateTopic | DeleteTopic | AlterConfig | ElectLeaders | Reassign | UpdateFeature | UnregisterBroker
)


def creatable(topic: TopicPlan, *, chance: Random) -> CreatableTopic:
    """Returns a topic as the controller takes it, under a new id."""
    return CreatableTopic(
        name=topic.name,
        topic_id=TopicId(base64.urlsafe_b64encode(chance.randbytes(16)).decode().rstrip("=")),
        assignments=topic.replicas,
        configs=topic.properties,
    )
