"""Rules that only a ZooKeeper cluster has, and the eras that are presets of them.

A switch in ``switches`` is read by KRaft nodes, too; a rule here by the ZooKeeper controller and by the broker that
takes its requests, each in exactly one place. ``docs/eras-zookeeper.md`` gives the source of each value. An era is the
code of one release at the protocol version of that release; another ``inter.broker.protocol.version`` makes it a
rolling upgrade. Eras are a chain: each names only its differences from the next newer one, ``kip-550-zk`` its
differences from Kafka 3.9.
"""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final

import msgspec
from msgspec.structs import replace

from laststand.emulator.core.switches import ERAS, MaximalIsr, Switches
from laststand.emulator.core.types import StrayCleanup
from laststand.emulator.core.zookeeper.inter_broker_protocol import LATEST, IbpLevel, InterBrokerProtocol, ibp_level
from laststand.emulator.core.zookeeper.nodes.partition_state import StateFormat
from laststand.emulator.core.zookeeper.nodes.topic import TopicFormat


class AlterIsrChecks(Enum):
    """Validations by the controller before it writes an ISR for a leader, by the release that has them."""

    NONE = "none"
    """The release has no such request."""

    KAFKA_2_7 = "2.7"
    """Lower leader epoch; equal content; the version of the node (2.7 to 3.1)."""

    KAFKA_3_2 = "3.2"
    """First of all the recovery state (KIP-704)."""

    KAFKA_3_3 = "3.3"
    """A leader that is ahead goes to another controller (KAFKA-14154); members have to be eligible (KIP-841)."""

    KIP = "kip"
    """As ``KAFKA_3_3``; also, the sender leads, and the ISR is among the replicas (KIP-497)."""


class IsrSettledBy(Enum):
    """The message by which a leader learns that its ISR is committed, and so the time of the answer (KIP-497)."""

    ANSWER = "answer"
    """The answer to AlterPartition, or to its own write (Kafka)."""

    LEADER_AND_ISR = "leader_and_isr"
    """A LeaderAndIsr with the newer partition epoch; the answer, before the write, says that it was taken: the KIP."""


class IsrWriteUnknown(Enum):
    """The leader's reaction to its own ISR write that ZooKeeper refused."""

    KEEP = "keep"
    """The former ISR bounds the high watermark, and the same stale version is tried again (up to 2.7; KAFKA-2729)."""

    PENDING = "pending"
    """The larger ISR counts until LeaderAndIsr arrives; no second try (2.8 and later)."""


class EqualEpochLeaderAndIsr(Enum):
    """The broker's reaction to LeaderAndIsr with the leader epoch that it already has."""

    IGNORED = "ignored"
    """Refused with STALE_CONTROLLER_EPOCH, whatever else it says (Kafka)."""

    NEWER_PARTITION_EPOCH = "newer_partition_epoch"
    """Taken where the partition epoch is newer (KIP-497, KIP-704)."""


class LeaderRecovery(Enum):
    """The treatment of the mark of an unclean election (KIP-704)."""

    NONE = "none"
    """Neither read nor kept (before 3.2)."""

    STORED = "stored"
    """Kept and passed on; the leader calls itself recovered at once (3.2 and later)."""

    GATE = "gate"
    """The leader recovers before it serves: the KIP."""


class StopReplicaFence(Enum):
    """The leader epochs of StopReplica that a broker accepts (KIP-570)."""

    OFF = "off"
    """Any: that of a reassignment long over deletes what came since (before 2.6)."""

    GREATER = "greater"
    """Only newer ones: who cancels a reassignment leaves a stray (2.6 to 3.4.0, KAFKA-13972)."""

    NOT_LOWER = "not_lower"
    """All but older ones (3.4.1 and later)."""


class WatchNotifications(Enum):
    """The controller's reaction to notifications of leaders that wrote their ISR themselves."""

    ALWAYS = "always"
    """At every protocol version: other brokers may be older (Kafka)."""

    BELOW_ALTER_ISR = "below_alter_isr"
    """Only where its own protocol has no AlterIsr: KIP-497."""


class ZooKeeperRules(msgspec.Struct, frozen=True, kw_only=True):
    """One frozen set of rules. The defaults are those of Kafka 3.9."""

    alter_isr_checks: AlterIsrChecks = AlterIsrChecks.KAFKA_3_3
    """Validations by the controller before it writes an ISR (KIP-497)."""

    isr_settled_by: IsrSettledBy = IsrSettledBy.ANSWER
    """The message by which a leader learns its new ISR (KIP-497)."""

    isr_write_unknown: IsrWriteUnknown = IsrWriteUnknown.PENDING
    """The leader's reaction to its own write that was refused (KAFKA-2729)."""

    equal_epoch_leader_and_isr: EqualEpochLeaderAndIsr = EqualEpochLeaderAndIsr.IGNORED
    """The broker's reaction to LeaderAndIsr with the leader epoch that it has (KIP-704)."""

    leader_and_isr_partition_epoch_check: bool = True
    """LeaderAndIsr with an older partition epoch is skipped (KAFKA-13790)."""

    leader_recovery_state: LeaderRecovery = LeaderRecovery.STORED
    """The treatment of RECOVERING (KIP-704)."""

    stop_replica_epoch: StopReplicaFence = StopReplicaFence.NOT_LOWER
    """The condition under which StopReplica is too old (KIP-570)."""

    isr_eligibility_check: bool = True
    """A leader adds only followers that are known to be alive (KIP-841)."""

    topic_ids: bool = True
    """Topic nodes, requests and logs have topic ids (KIP-516)."""

    contains_all_replicas: bool = False
    """The first LeaderAndIsr to a broker names all its replicas; other logs are strays (KIP-550)."""

    control_broker_epoch_check: bool = True
    """Control requests that were meant for a former incarnation are refused (KIP-380)."""

    controller_epoch_fence: bool = True
    """The controller writes only while the epoch of its election is the last one (KAFKA-6082)."""

    watch_notifications: WatchNotifications = WatchNotifications.ALWAYS
    """The controller's attention to the notifications of leaders that write the ISR themselves (KIP-497)."""

    def protocol(self, level: IbpLevel) -> InterBrokerProtocol:
        """Returns the release's meaning of a protocol version."""
        return InterBrokerProtocol(level, knows_topic_ids=self.topic_ids)

    @property
    def state_format(self) -> StateFormat:
        """The fields of a state node that the release knows."""
        knows_recovery = self.leader_recovery_state is not LeaderRecovery.NONE
        return StateFormat.WITH_RECOVERY if knows_recovery else StateFormat.WITHOUT_RECOVERY

    @property
    def alter_partition_max_version(self) -> int:
        """The highest version of AlterPartition that a controller of the release understands."""
        return _ALTER_PARTITION_VERSIONS[self.alter_isr_checks]

    @property
    def topic_format(self) -> TopicFormat:
        """The fields of a topic node that the release knows."""
        return TopicFormat.WITH_IDS if self.topic_ids else TopicFormat.WITHOUT_IDS


_ALTER_PARTITION_VERSIONS: Final = MappingProxyType(
    {
        AlterIsrChecks.NONE: 0,
        AlterIsrChecks.KAFKA_2_7: 0,
        AlterIsrChecks.KAFKA_3_2: 1,
        AlterIsrChecks.KAFKA_3_3: 3,
        AlterIsrChecks.KIP: 3,
    }
)


class ZooKeeperEra(msgspec.Struct, frozen=True, kw_only=True):
    """A release: the replication rules that it shares with KRaft clusters, and its other rules."""

    switches: Switches
    rules: ZooKeeperRules
    ibp: IbpLevel = LATEST


def _neighbour(
    era: ZooKeeperEra, *, ibp: str, switches: Mapping[str, object] = MappingProxyType({}), **rules: object
) -> ZooKeeperEra:
    """Returns the era that differs from another one in its protocol version, and in these switches and rules."""
    return ZooKeeperEra(
        switches=replace(era.switches, **switches), rules=replace(era.rules, **rules), ibp=ibp_level(ibp)
    )


_KAFKA_3_9: Final = ZooKeeperEra(
    switches=replace(
        ERAS["kafka-3.9"],
        ap_broker_epoch_check=False,
        stray_cleanup=StrayCleanup.OFF,
        roles_after_registration=True,
    ),
    rules=ZooKeeperRules(),
    ibp=ibp_level("3.9"),
)
_KIP_550: Final = _neighbour(
    _KAFKA_3_9,
    ibp="3.9",
    switches={"recovering_gate": True, "stray_cleanup": StrayCleanup.DELETE},
    alter_isr_checks=AlterIsrChecks.KIP,
    isr_settled_by=IsrSettledBy.LEADER_AND_ISR,
    equal_epoch_leader_and_isr=EqualEpochLeaderAndIsr.NEWER_PARTITION_EPOCH,
    leader_recovery_state=LeaderRecovery.GATE,
    contains_all_replicas=True,
    watch_notifications=WatchNotifications.BELOW_ALTER_ISR,
)
_KAFKA_3_2: Final = _neighbour(
    _KAFKA_3_9,
    ibp="3.2",
    switches={"hw_requires_min_isr": False, "min_isr_capped": False},
    alter_isr_checks=AlterIsrChecks.KAFKA_3_2,
    leader_and_isr_partition_epoch_check=False,
    stop_replica_epoch=StopReplicaFence.GREATER,
    isr_eligibility_check=False,
)
_KAFKA_3_1: Final = _neighbour(
    _KAFKA_3_2, ibp="3.1", alter_isr_checks=AlterIsrChecks.KAFKA_2_7, leader_recovery_state=LeaderRecovery.NONE
)
_KAFKA_2_6: Final = _neighbour(
    _KAFKA_3_1,
    ibp="2.6",
    switches={"maximal_isr": MaximalIsr.COMMITTED_ONLY},
    alter_isr_checks=AlterIsrChecks.NONE,
    isr_write_unknown=IsrWriteUnknown.KEEP,
    topic_ids=False,
)
_KAFKA_2_5: Final = _neighbour(_KAFKA_2_6, ibp="2.5", stop_replica_epoch=StopReplicaFence.OFF)

ZOOKEEPER_ERAS: Final = MappingProxyType(
    {
        "kafka-2.5-zk": _KAFKA_2_5,
        "kafka-2.6-zk": _KAFKA_2_6,
        "kafka-3.1-zk": _KAFKA_3_1,
        "kafka-3.2-zk": _KAFKA_3_2,
        "kafka-3.9-zk": _KAFKA_3_9,
        "kip-550-zk": _KIP_550,
    }
)
"""Presets that name real releases, and the three KIPs to the letter."""
