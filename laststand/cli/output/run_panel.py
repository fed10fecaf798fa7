"""Shows a run on a terminal while it is played: partitions as committed, acknowledgements, faults in force."""

from collections import deque
from typing import Final

from rich.console import Group
from rich.table import Table
from rich.text import Text

from laststand.chaos.play.runner import Run
from laststand.chaos.play.target import Target
from laststand.chaos.process.target import ProcessTarget
from laststand.cli.output.live import Clock
from laststand.emulator.core.image import PartitionState

_PARTITIONS_MAX: Final = 8
_RATE_OVER_S: Final = 2.0


class RunPanel:
    """One run.

    Args:
        run: name of the run.
        clock: of the terminal.
    """

    def __init__(self, run: Run, *, clock: Clock) -> None:
        self._run = run
        self._clock = clock
        self._acked: deque[tuple[float, int]] = deque()

    def shown(self) -> Group:
        """Returns the present picture; only its name before and after the run's steps."""
        target = self._run.target
        head = Text(self._run.order.name, style="bold")
        if target is None:
            return Group(head)
        head.append(f"  {self._rate(target):.0f} acked/s", style="not bold")
        return Group(head, _partitions(target), *_faults(target))

    def _rate(self, target: Target) -> float:
        """Returns the number of records acknowledged in each of the last seconds."""
        now_s = self._clock.seconds
        self._acked.append((now_s, sum(each.records for each in target.counts.acked)))
        while now_s - self._acked[0][0] > _RATE_OVER_S and len(self._acked) > 2:
            self._acked.popleft()
        (begin_s, before), (end_s, now) = self._acked[0], self._acked[-1]
        return (now - before) / (end_s - begin_s) if end_s > begin_s else 0.0


def _partitions(target: Target) -> Table:
    table = Table.grid(padding=(0, 2))
    found = sorted(target.image.partitions.items())
    for partition, state in found[:_PARTITIONS_MAX]:
        leader = "no leader" if state.leader is None else f"leader {state.leader}"
        table.add_row(f"  {partition}", leader, f"epoch {state.leader_epoch}", _members(state))
    if len(found) > _PARTITIONS_MAX:
        table.add_row(f"  and {len(found) - _PARTITIONS_MAX} more")
    return table


def _members(state: PartitionState) -> str:
    isr = " ".join(map(str, state.isr)) or "-"
    elr = " ".join(map(str, state.elr)) or "-"
    return f"ISR {isr}  ELR {elr}"


def _faults(target: Target) -> list[Text]:
    if not isinstance(target, ProcessTarget):
        return []
    return [Text(f"  {fault}", style="yellow") for fault in target.in_force()]
