"""A controller's image in the state that a vector describes, and the words for what became of it."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from laststand.emulator.core.controller.controller import Controller
from laststand.emulator.core.controller.decision import Decision
from laststand.emulator.core.controller.view import ClusterView
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.image import MetadataImage, PartitionState
from laststand.emulator.core.metadata_version import ELR_VERSION, METADATA_VERSION, level_of
from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.records import (
    ConfigRecord,
    FeatureLevelRecord,
    MetadataBatch,
    PartitionRecord,
    Record,
    RegisterBrokerRecord,
    TopicRecord,
)
from laststand.emulator.core.switches import LastKnown, Switches
from laststand.emulator.core.types import (
    BrokerEpoch,
    BrokerId,
    ConfigResource,
    IncarnationId,
    LeaderEpoch,
    MetadataOffset,
    NodeId,
    PartitionEpoch,
    TopicId,
    TopicPartition,
)
from tests.conformance.harness import Fields, Vector, mismatches
from tests.conformance.unreadable import recovery_state

CONTROLLER: Final = NodeId(1000)
CLUSTER: Final = "the cluster"
TOPIC: Final = "topic"
TOPIC_ID: Final = TopicId("topic-id")
PARTITION: Final = TopicPartition(TOPIC, 0)
SETS: Final = frozenset({"elr", "last_known_elr", "adding", "removing", "cluster_config_contains", "discarded"})


def ids(values: Iterable[int]) -> tuple[BrokerId, ...]:
    """Returns broker ids as the core has them."""
    return tuple(BrokerId(NodeId(value)) for value in values)


def broker(value: int) -> BrokerId:
    """Returns one broker id."""
    return BrokerId(NodeId(value))


def leader_of(value: int) -> BrokerId | None:
    """Returns a leader; -1 is nobody."""
    return None if value == -1 else broker(value)


def epoch_of(value: int | None) -> BrokerEpoch | None:
    """Returns a broker epoch; -1 is unknown."""
    return None if value is None or value == -1 else BrokerEpoch(value)


def error_name(error: ErrorCode) -> str | None:
    """Returns a Kafka error name; success is ``None``."""
    return None if error is ErrorCode.NONE else error.name


def switches_of(vector: Vector) -> Switches:
    """Returns the era's switches with the vector's variant of what an offline partition remembers."""
    switches = vector.switches
    if vector.config.get("use_last_known_leader", True):
        return switches
    return msgspec.structs.replace(switches, last_known=LastKnown.KIP)


def properties_of(vector: Vector) -> NodeProperties:
    """Returns the node's static configuration."""
    return NodeProperties(
        min_insync_replicas=vector.config.get("min_isr", 1),
        unclean_leader_election_enable=vector.config.get("unclean", False),
        metadata_version=vector.config.get("mv", "4.2"),
        auto_leader_rebalance_enable=False,
    )


def partition_state(before: Fields, switches: Switches) -> PartitionState:
    """Returns a vector's partition."""
    last_known = ids(sorted(before.get("last_known_elr", [])))
    is_single = switches.last_known is LastKnown.LEADER and len(last_known) == 1
    return PartitionState(
        topic_id=TOPIC_ID,
        replicas=ids(before["replicas"]),
        isr=ids(before["isr"]),
        leader=leader_of(before.get("leader", -1)),
        leader_epoch=LeaderEpoch(before.get("leader_epoch", 0)),
        partition_epoch=PartitionEpoch(before.get("partition_epoch", 0)),
        leader_recovery_state=recovery_state(before.get("leader_recovery_state", "RECOVERED")),
        elr=ids(sorted(before.get("elr", []))),
        last_known_elr=() if is_single else last_known,
        last_known_leader=last_known[0] if is_single else None,
        adding_replicas=ids(before.get("adding", [])),
        removing_replicas=ids(before.get("removing", [])),
    )


def partition_fields(state: PartitionState, switches: Switches) -> dict[str, Any]:
    """Returns a partition in a vector's words. As shipped, the last known leader is what ``lastKnownElr`` holds."""
    last_known = list(state.last_known_elr)
    if switches.last_known is LastKnown.LEADER and state.last_known_leader is not None:
        last_known.append(state.last_known_leader)
    return {
        "replicas": list(state.replicas),
        "isr": list(state.isr),
        "elr": list(state.elr),
        "last_known_elr": last_known,
        "leader": -1 if state.leader is None else state.leader,
        "leader_epoch": state.leader_epoch,
        "partition_epoch": state.partition_epoch,
        "leader_recovery_state": state.leader_recovery_state.name,
        "adding": list(state.adding_replicas),
        "removing": list(state.removing_replicas),
    }


def register_records(brokers: Fields) -> list[Record]:
    """Returns the registrations of a vector's brokers."""
    return [
        RegisterBrokerRecord(
            broker_id=broker(int(name)),
            incarnation_id=IncarnationId(fields.get("incarnation", f"incarnation-{name}")),
            broker_epoch=BrokerEpoch(fields.get("epoch", 100 + int(name))),
            log_dirs=(f"dir-{name}",),
            fenced=fields.get("fenced", False),
            in_controlled_shutdown=fields.get("in_controlled_shutdown", False),
        )
        for name, fields in sorted(brokers.items())
    ]


def feature_records(vector: Vector) -> list[Record]:
    """Returns the finalized features."""
    records: list[Record] = [
        FeatureLevelRecord(name=METADATA_VERSION, feature_level=level_of(vector.config.get("mv", "4.2")))
    ]
    if vector.config.get("elr_enabled", vector.switches.elr):
        records.append(FeatureLevelRecord(name=ELR_VERSION, feature_level=1))
    return records


def partition_records(state: PartitionState) -> list[Record]:
    """Returns a topic of one partition in that state."""
    return [
        TopicRecord(name=TOPIC, topic_id=TOPIC_ID),
        PartitionRecord(
            topic_id=TOPIC_ID,
            partition=0,
            replicas=state.replicas,
            isr=state.isr,
            leader=state.leader,
            leader_epoch=state.leader_epoch,
            partition_epoch=state.partition_epoch,
            leader_recovery_state=state.leader_recovery_state,
            elr=state.elr,
            last_known_elr=state.last_known_elr,
            last_known_leader=state.last_known_leader,
            adding_replicas=state.adding_replicas,
            removing_replicas=state.removing_replicas,
        ),
    ]


def config_records(before: Fields) -> list[Record]:
    """Returns dynamic configuration: of the cluster, of brokers by id, of the topic."""
    by_resource: list[tuple[ConfigResource, str, Fields]] = [
        (ConfigResource.BROKER, "", before.get("cluster_config") or {}),
        (ConfigResource.TOPIC, TOPIC, before.get("topic_config") or {}),
    ]
    for name, values in (before.get("broker_configs") or {}).items():
        by_resource.append((ConfigResource.BROKER, str(name), values))
    return [
        ConfigRecord(resource=resource, resource_name=name, name=key, value=str(value))
        for resource, name, values in by_resource
        for key, value in values.items()
    ]


class World:
    """The image that a vector describes, with a view on it.

    Attributes:
        controller: a controller that replayed it, not started.
        switches: the vector's switches.
        records: what was committed since.
    """

    def __init__(self, vector: Vector, *, extra: Sequence[Record] = ()) -> None:
        self.switches = switches_of(vector)
        self.properties = properties_of(vector)
        self.controller = Controller(self.properties, self.switches, CLUSTER, CONTROLLER)
        self.records: list[Record] = []
        records = feature_records(vector) + register_records(vector.brokers) + config_records(vector.before)
        if "replicas" in vector.before:
            records += partition_records(partition_state(vector.before, self.switches))
        self.replay([*records, *extra])
        self._before = self.partition

    @property
    def image(self) -> MetadataImage:
        """The image."""
        return self.controller.image

    @property
    def view(self) -> ClusterView:
        """The view of the cluster that decisions look at."""
        return ClusterView(image=self.image, properties=self.properties, switches=self.switches, node_id=CONTROLLER)

    @property
    def partition(self) -> PartitionState | None:
        """The vector's partition, if it has one."""
        return self.image.partitions.get(PARTITION)

    def replay(self, records: Sequence[Record]) -> None:
        """Replays records that were committed before."""
        self.controller.replay(MetadataBatch(base_offset=self.image.next_offset, records=tuple(records)))

    def replay_up_to(self, offset: int) -> None:
        """Repeats a record until the next one will have this offset."""
        filler = FeatureLevelRecord(name=METADATA_VERSION, feature_level=self.image.feature_level(METADATA_VERSION))
        self.replay([filler] * (offset - self.image.next_offset))

    def commit(self, decisions: Iterable[Decision]) -> None:
        """Replays what was decided."""
        for decision in decisions:
            self.image.replay(decision.record, offset=MetadataOffset(self.image.next_offset))
            self.records.append(decision.record)

    def compare(self, vector: Vector, **observed: object) -> list[str]:
        """Returns the mismatches of the partition and of whatever else was observed."""
        state = self.partition
        actual: dict[str, Any] = {} if state is None else partition_fields(state, self.switches)
        actual["no_change"] = state == self._before
        return mismatches(vector.expect, {**actual, **observed}, sets=SETS)
