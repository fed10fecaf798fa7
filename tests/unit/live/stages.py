"""Clusters for tests of the live page."""

from pathlib import Path

from laststand.emulator.core.errors import EmulatorError
from laststand.emulator.live.stage import LinkRow, NodeRow, Offer, PartitionRow, StageState

KILL = Offer(step="{kill: {node: 1}}", label="kill")
FAIL = Offer(step="{kill: {node: 2}}", label="kill")


class PlayedStage:
    """A cluster that does nothing but remember what was asked for."""

    def __init__(self, directory: Path, *, name: str = "a cluster") -> None:
        self.name = name
        self.era = "kip-966"
        self.directory = directory
        self.played: list[str] = []

    def state(self) -> StageState:
        is_down = KILL.step in self.played
        offers = (FAIL,) if is_down else (KILL, FAIL)
        return StageState(
            nodes=(
                NodeRow(name=self.name, state="down" if is_down else "running", is_well=not is_down, offers=offers),
            ),
            links=(LinkRow(name="0->1", broken="", offers=()),),
            partitions=(PartitionRow(name="orders-0", leader=1, leader_epoch=2, isr=(0, 1), elr=(2,)),),
        )

    async def play(self, step: str) -> str:
        if step == FAIL.step:
            raise EmulatorError("it did not work")
        self.played.append(step)
        return "process 7 was killed"
