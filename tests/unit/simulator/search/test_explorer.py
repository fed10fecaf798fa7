"""Schedules on a cluster that is given: every move copes with whatever brokers and replicas there are."""

import pytest

from laststand.emulator.core.types import BrokerId, NodeId
from laststand.emulator.plan.plan import Plan
from laststand.emulator.plan.topics import PlannedTopic
from laststand.emulator.simulator.profiles.profiles import PROFILES
from laststand.emulator.simulator.search.explorer import SweepOptions, explore


def cluster(brokers: int, replication_factor: int) -> Plan:
    replicas = tuple(
        tuple(BrokerId(NodeId((index + place) % brokers)) for place in range(replication_factor))
        for index in range(min(2, brokers))
    )
    topics = (
        PlannedTopic(name="orders", replicas=replicas, properties=()),
        PlannedTopic(name="refunds", replicas=replicas[:1], properties=(("min.insync.replicas", "2"),)),
    )
    return Plan(brokers=brokers, topics=topics)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(("brokers", "replication_factor"), [(1, 1), (2, 1), (2, 2), (5, 5)])
def test_any_cluster_can_be_explored(profile: str, brokers: int, replication_factor: int) -> None:
    given = cluster(brokers, replication_factor)
    schedule = explore(3, SweepOptions(cluster=given, profiles=(profile,)))
    assert (schedule.plan.brokers, schedule.plan.topics) == (brokers, given.topics)
    assert schedule.plan.actions
    assert schedule.outcome.findings == ()
