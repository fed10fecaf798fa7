"""A broker that an administrator unregistered is started again at the end: until then it is of no use."""

from pathlib import Path

import pytest

from laststand.chaos.play.ending import restore_and_settle
from laststand.chaos.play.step_player import StepPlayer
from laststand.chaos.scenario.scenario_file import read_scenario
from laststand.emulator.core.types import BrokerId, NodeId
from laststand.emulator.plan import actions
from tests.unit.chaos.play.virtual_time import ready

NODE = NodeId(2)
UNREGISTER = f"unregister_broker: {{node: {NODE}}}"
RESTART = (actions.Stop(nodes=(NODE,)), actions.Start(nodes=(NODE,)))

TEXT = """\
name: unregistered
cluster: {{brokers: 3}}
topics: [{{name: orders, replicas: [[0, 1, 2]]}}]
workload: {{producers: [{{acks: all, rate: 0}}]}}
steps:
{steps}
"""


@pytest.mark.parametrize(
    ("steps", "restart"),
    [
        ((UNREGISTER,), RESTART),
        ((UNREGISTER, f"kill: {{node: {NODE}}}", f"start: {{node: {NODE}}}"), ()),
        ((UNREGISTER, f"kill: {{node: {NODE}}}"), ()),
    ],
    ids=["still idle", "started since", "down, and started in any case"],
)
async def test_an_unregistered_broker_belongs_to_the_cluster_again_at_the_end(
    steps: tuple[str, ...], restart: tuple[actions.Action, ...], tmp_path: Path
) -> None:
    text = TEXT.format(steps="\n".join(f"  - {step}" for step in steps))
    scenario = read_scenario(Path("unregistered.yaml"), text)
    async with ready(scenario, tmp_path, seed=1) as target:
        player = StepPlayer(target=target, seed=1)
        for number, step in enumerate(scenario.steps, start=1):
            await player.play(number, step)
        assert player.repairs == restart
        await restore_and_settle(target, scenario.broker_ids, more=player.repairs)
        assert not target.image.brokers[BrokerId(NODE)].fenced
