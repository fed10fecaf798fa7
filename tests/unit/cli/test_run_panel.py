"""The panel of a run on a terminal, rate, leaders, faults; and the lines where there is no terminal."""

import io
from types import SimpleNamespace
from typing import cast

import pytest
from rich.console import Console

from laststand.chaos.play.runner import Run, RunStatus
from laststand.chaos.process.target import ProcessTarget
from laststand.cli.output.live import Clock
from laststand.cli.output.progress import PlainProgress
from laststand.cli.output.run_panel import RunPanel
from laststand.emulator.core.image import PartitionState
from laststand.emulator.core.types import BrokerId, LeaderEpoch, NodeId, PartitionEpoch, TopicId, TopicPartition


class SetClock(Clock):
    """A clock that shows what it is set to."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0

    @property
    def seconds(self) -> float:
        return self.now_s


class PlayedTarget(ProcessTarget):
    """A target of which only what a panel looks at is there."""

    def __init__(self) -> None:
        self.played = SimpleNamespace(partitions={}, acked=[SimpleNamespace(records=0)], faults=[])
        self.__dict__["metadata"] = SimpleNamespace(image=self.played)
        self.__dict__["in_force"] = lambda: self.played.faults
        self.__dict__["client"] = SimpleNamespace(counts=self.played)


def broker(number: int) -> BrokerId:
    return BrokerId(NodeId(number))


def state(leader: int | None, *, isr: tuple[int, ...], elr: tuple[int, ...] = ()) -> PartitionState:
    return PartitionState(
        topic_id=TopicId("id"),
        replicas=(broker(0), broker(1)),
        isr=tuple(map(broker, isr)),
        leader=None if leader is None else broker(leader),
        leader_epoch=LeaderEpoch(3),
        partition_epoch=PartitionEpoch(0),
        elr=tuple(map(broker, elr)),
    )


@pytest.fixture
def target() -> PlayedTarget:
    return PlayedTarget()


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


def panel(target: PlayedTarget | None, clock: Clock) -> RunPanel:
    run = SimpleNamespace(target=target, order=SimpleNamespace(name="kip-966"))
    return RunPanel(cast(Run, run), clock=clock)


def lines(panel: RunPanel) -> list[str]:
    console = Console(file=io.StringIO(), width=100, no_color=True)
    with console.capture() as capture:
        console.print(panel.shown())
    return [line.rstrip() for line in capture.get().splitlines()]


def test_before_its_steps_a_run_has_only_its_name(clock: SetClock) -> None:
    assert lines(panel(None, clock)) == ["kip-966"]


def test_the_rate_is_that_of_the_last_two_seconds(target: PlayedTarget, clock: SetClock) -> None:
    shown = panel(target, clock)
    assert lines(shown)[0] == "kip-966  0 acked/s"
    for second in range(1, 11):
        clock.now_s = float(second)
        target.played.acked[0].records += 100 if second <= 5 else 10
        lines(shown)
        assert len(shown._acked) <= 4
    assert lines(shown)[0] == "kip-966  10 acked/s"


def test_leaders_isr_and_elr_are_shown_and_partitions_without_a_leader(target: PlayedTarget, clock: SetClock) -> None:
    target.played.partitions = {
        TopicPartition("orders", 0): state(1, isr=(1, 0)),
        TopicPartition("orders", 1): state(None, isr=(), elr=(0,)),
    }
    assert [" ".join(line.split()) for line in lines(panel(target, clock))[1:]] == [
        "orders-0 leader 1 epoch 3 ISR 1 0 ELR -",
        "orders-1 no leader epoch 3 ISR - ELR 0",
    ]


def test_of_many_partitions_the_first_are_shown_and_the_rest_is_counted(target: PlayedTarget, clock: SetClock) -> None:
    target.played.partitions = {TopicPartition("orders", number): state(0, isr=(0, 1)) for number in range(11)}
    found = lines(panel(target, clock))[1:]
    assert len(found) == 9
    assert found[-1].strip() == "and 3 more"


def test_faults_in_force_are_shown(target: PlayedTarget, clock: SetClock) -> None:
    target.played.faults = ["isolate broker 1", "pause broker 0"]
    assert [line.strip() for line in lines(panel(target, clock)) if line][1:] == target.played.faults


def test_elsewhere_a_line_is_printed_for_each_finished_step(capsys: pytest.CaptureFixture[str]) -> None:
    progress = PlainProgress()
    progress.watch([])
    progress.status(RunStatus(run="kip-966", step=1, steps=2, text="kill", seen=None))
    progress.status(RunStatus(run="kip-966", step=1, steps=2, text="kill", seen="killed"))
    progress.status(RunStatus(run="kip-966", step=3, steps=2, text="read everything", seen=None))
    progress.phase("verify")
    printed = [line.split("] ", 1)[1] for line in capsys.readouterr().err.splitlines()]
    assert printed == ["kip-966: 1/2 kill -> killed", "kip-966: read everything", "verify"]
