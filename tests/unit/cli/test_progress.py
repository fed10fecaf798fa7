"""The progress of runs on a terminal."""

import io

from rich.console import Console

from laststand.chaos.play.runner import RunStatus
from laststand.cli.output.progress import LiveProgress


def shown(progress: LiveProgress, *, width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, force_terminal=True, no_color=True)
    with console.capture() as capture:
        console.print(progress)
    return [line.rstrip() for line in capture.get().splitlines()]


def test_a_run_keeps_one_line_and_brackets_are_no_markup() -> None:
    progress = LiveProgress(("kafka-3.9", "kip-966"))
    progress.status(RunStatus(run="kip-966", step=3, steps=14, text="{until: {isr: [1, 2]}}", seen="isr=[1, 2] elr=[]"))
    progress.phase("verify")
    assert shown(progress, width=100) == [
        "kafka-3.9      waiting",
        "kip-966   3/14 {until: {isr: [1, 2]}} -> isr=[1, 2] elr=[]",
        "0 s            verify",
    ]
    assert shown(progress, width=40)[1] == "kip-966   3/14 {until: {isr: [1, 2]}} -…"
