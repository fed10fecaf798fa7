"""The end of a run: everything is mended before the cluster is judged."""

import pytest

from laststand.emulator.plan.plan import parse_plan
from laststand.emulator.simulator.run.simulation import Simulation

_LAST_ACTION = """
cluster brokers=3 {controllers}
topic orders replicas=(0,1,2) min.insync.replicas=2
wait 500
{pause}
unregister_broker: {{node: 1}}
"""


@pytest.mark.parametrize("controllers", ["", "controllers=3", "controllers=3 combined=true"])
@pytest.mark.parametrize("pause", ["", "pause 1"])
def test_a_broker_that_is_unregistered_at_last_is_restarted(controllers: str, pause: str) -> None:
    """The request is still under way when the mending begins."""
    simulation = Simulation(parse_plan(_LAST_ACTION.format(controllers=controllers, pause=pause)))
    simulation.play_plan()
    assert simulation.outcome().findings == ()
    assert simulation.cluster.image.brokers.keys() == simulation.cluster.nodes.keys()
    assert simulation.cluster.nodes[simulation.plan.topics[0].replicas[0][1]].incarnation == 1
