"""The versions of APIs that the brokers of a release serve: a cluster offers no more than its era's release did.

Some APIs are what an era is about: eligible leader replicas are in DescribeTopicPartitions, topic ids in Produce, Fetch
and Metadata. The oldest release here is 2.1, the oldest that Kafka's own clients of today connect to (KIP-896); older
eras are offered its versions.
"""

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from laststand.emulator.core.eras import ZooKeeperSwitches
from laststand.emulator.core.switches import Switches
from laststand.emulator.core.zookeeper.rules import AlterIsrChecks, LeaderRecovery, StopReplicaFence
from laststand.emulator.kafka_listener.messages import VersionRange, all_apis

Release: TypeAlias = Literal["2.1", "2.5", "2.6", "3.1", "3.2", "3.9-zk", "3.9", "4.2"]

_NEWEST_UNTIL_3_9: Final = """
                               2.1    2.5    2.6    3.1    3.2 3.9-zk    3.9
AddOffsetsToTxn                  1      1      1      3      3      4      4
AddPartitionsToTxn               1      1      1      3      3      5      5
AlterClientQuotas                -      -      0      1      1      1      1
AlterPartitionReassignments      -      0      0      0      0      0      0
ApiVersions                      2      3      3      3      3      4      4
CreateAcls                       1      2      2      2      2      3      3
CreatePartitions                 1      2      2      3      3      3      3
CreateTopics                     3      5      5      7      7      7      7
DeleteAcls                       1      2      2      2      2      3      3
DeleteGroups                     1      2      2      2      2      2      2
DeleteRecords                    1      1      2      2      2      2      2
DeleteTopics                     3      4      4      6      6      6      6
DescribeAcls                     1      2      2      2      2      3      3
DescribeClientQuotas             -      -      0      1      1      1      1
DescribeCluster                  -      -      -      0      0      1      1
DescribeConfigs                  2      2      3      4      4      4      4
DescribeGroups                   2      5      5      5      5      5      5
DescribeLogDirs                  1      1      2      2      3      4      4
DescribeProducers                -      -      -      0      0      0      0
DescribeQuorum                   -      -      -      -      -      -      2
DescribeTopicPartitions          -      -      -      -      -      -      0
DescribeTransactions             -      -      -      0      0      0      0
ElectLeaders                     -      2      2      2      2      2      2
EndTxn                           1      1      1      3      3      4      4
Fetch                           10     11     11     13     13     17     17
FindCoordinator                  2      3      3      4      4      6      6
Heartbeat                        2      4      4      4      4      4      4
IncrementalAlterConfigs          -      1      1      1      1      1      1
InitProducerId                   1      3      3      4      4      5      5
JoinGroup                        3      7      7      7      9      9      9
LeaveGroup                       2      4      4      4      5      5      5
ListConfigResources              -      -      -      -      -      -      0
ListGroups                       2      3      4      4      4      5      5
ListOffsets                      4      5      5      7      7      9      9
ListPartitionReassignments       -      0      0      0      0      0      0
ListTransactions                 -      -      -      0      0      1      1
Metadata                         7      9      9     12     12     12     12
OffsetCommit                     6      8      8      8      8      9      9
OffsetDelete                     -      0      0      0      0      0      0
OffsetFetch                      5      7      7      8      8      9      9
OffsetForLeaderEpoch             2      3      3      4      4      4      4
Produce                          7      8      8      9      9     11     11
SyncGroup                        2      5      5      5      5      5      5
TxnOffsetCommit                  2      3      3      3      3      4      4
UnregisterBroker                 -      -      -      -      -      -      0
UpdateFeatures                   -      -      -      0      0      1      1
WriteTxnMarkers                  -      -      -      1      1      1      1
"""
"""The newest version of each API by release, from its message definitions; those of 4.2 are ``messages.txt``."""

_UNFINISHED: Final = {"InitProducerId": 5}
"""Newest versions that Kafka 4.2 has finished, where its definitions go on."""

_FOR_KRAFT_ALONE: Final = frozenset(
    {
        "AlterClientQuotas",
        "CreateAcls",
        "DeleteAcls",
        "DescribeClientQuotas",
    }
)
"""Not served beside ZooKeeper: access control lists and quotas are metadata records here."""


def release_of(rules: Switches) -> Release:
    """Returns the release whose brokers follow an era's rules; if single rules were changed, the nearest release."""
    if isinstance(rules, ZooKeeperSwitches):
        own = rules.zookeeper
        if not own.topic_ids:
            return "2.5" if own.stop_replica_epoch is StopReplicaFence.OFF else "2.6"
        if own.leader_recovery_state is LeaderRecovery.NONE:
            return "3.1"
        return "3.2" if own.alter_isr_checks is AlterIsrChecks.KAFKA_3_2 else "3.9-zk"
    if rules.elr or rules.produce_topic_id:
        return "4.2"
    return "3.9" if rules.hw_requires_min_isr else "2.1"


def served_versions(rules: Switches) -> Mapping[int, VersionRange]:
    """Returns the versions of each API that a cluster with these rules serves, by key; other APIs are left out."""
    release = release_of(rules)
    header, *rows = (line.split() for line in _NEWEST_UNTIL_3_9.strip().splitlines())
    newest = dict(_UNFINISHED)
    absent = set(_FOR_KRAFT_ALONE) if isinstance(rules, ZooKeeperSwitches) else set[str]()
    if release in header:
        for name, *versions in rows:
            version = versions[header.index(release)]
            if version == "-":
                absent.add(name)
            else:
                newest[name] = min(int(version), newest.get(name, int(version)))
    return {
        key: VersionRange(api.versions.first, min(api.versions.last, newest.get(api.name, api.versions.last)))
        for key, api in all_apis().items()
        if api.name not in absent
    }
