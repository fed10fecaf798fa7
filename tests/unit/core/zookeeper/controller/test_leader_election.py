"""Elections of which nobody comes out (vectors have the others)."""

from laststand.emulator.core.zookeeper.controller.leader_election import offline_leader
from tests.unit.core.zookeeper.controller.controllers import broker


def test_nobody_leads_where_nobody_is_online_not_even_uncleanly() -> None:
    replicas = (broker(1), broker(2))
    assert offline_leader(replicas, replicas, frozenset(), is_unclean_allowed=True) is None
