"""The report of one simulated run: its verdict, which actions of its plan were skipped, whether it proves anything.

An action that is impossible at the moment is skipped, so that plans stay playable while they are shrunk. The author of
a plan must learn of it, because a plan whose actions were all skipped breaks no promise either.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import click

from laststand.cli.program.exit_codes import ExitCode

if TYPE_CHECKING:
    from laststand.emulator.plan.plan import Plan
    from laststand.emulator.simulator.run.judgement import Judgement
    from laststand.emulator.simulator.run.simulation import SimulationResult

_SHOWN_MAX: Final = 5


class ReplayReport:
    """The report of a replay, in addition to its result.

    Args:
        plan: the plan to play.
        result: of the run.
        judgement: the verdict on the run.
        skipped: positions of actions that were not enabled.
        lines: of the plan's file, by position; empty without a file.
    """

    def __init__(
        self,
        plan: "Plan",
        result: "SimulationResult",
        judgement: "Judgement",
        skipped: Sequence[int],
        lines: Sequence[int] = (),
    ) -> None:
        from laststand.emulator.plan.lines import format_action

        self._count = len(plan.actions)
        self._judgement = judgement
        self._is_violation = bool(result.findings) or judgement.verdict.value == "violation"
        self._acks = max(0, result.acks - result.closing_acks)
        self.skipped = [
            {
                "position": position + 1,
                "line": lines[position] if lines else None,
                "action": format_action(plan.actions[position]),
            }
            for position in skipped
        ]

    @property
    def unknown(self) -> str | None:
        """Reason why the run proves nothing; ``None`` if it found or proved something."""
        if self._is_violation:
            return None
        if self._judgement.doubts:
            return "; ".join(self._judgement.doubts)
        if not self._count:
            return "the plan has no actions, so this proves nothing"
        if len(self.skipped) == self._count:
            return "every action was skipped, so this proves nothing"
        if not self._acks:
            return "nothing was acknowledged with acks=all, so no promise was at stake and this proves nothing"
        return None

    @property
    def exit_code(self) -> ExitCode:
        """The exit code."""
        if self._is_violation:
            return ExitCode.VIOLATION
        return ExitCode.UNKNOWN if self.unknown else ExitCode.VALID

    def print(self) -> None:
        """Prints the skipped actions to stderr, and whether anything was proved."""
        if self.skipped:
            click.echo(
                f"skipped, because impossible at the time: {len(self.skipped)} of {self._count} actions", err=True
            )
            for each in self.skipped[:_SHOWN_MAX]:
                line = "" if each["line"] is None else f"line {each['line']}, "
                click.echo(f"  {line}action {each['position']}: {each['action']}", err=True)
            if len(self.skipped) > _SHOWN_MAX:
                click.echo(f"  and {len(self.skipped) - _SHOWN_MAX} more", err=True)
        if self.unknown:
            click.echo(f"unknown: {self.unknown}", err=True)
