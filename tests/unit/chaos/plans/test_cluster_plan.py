"""The part of a scenario that the simulator explores: its cluster, but not its times."""

from laststand.chaos.plans.cluster_plan import cluster_plan
from laststand.chaos.scenario.scenario_file import find_scenario, load_scenario


def test_the_cluster_of_a_scenario_without_its_times() -> None:
    plan = cluster_plan(load_scenario(find_scenario("kip-966/last-replica-standing")))
    assert plan.brokers == 3
    assert plan.topics[0].replicas == ((0, 1, 2),)
    assert plan.topics[0].properties == (("min.insync.replicas", "2"),)
    assert "broker.session.timeout.ms" not in dict(plan.properties)
    assert plan.actions == ()
