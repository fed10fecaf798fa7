"""A process that dies within a turn: some of the turn's file effects are executed, and no later effect.

So no event and no message reports what the turn did to the logs. Turns that only rewrite checkpoints are passed over: a
crash after them is the same as a kill between turns.
"""

from collections.abc import Sequence
from typing import Final

from laststand.emulator.core import effects
from laststand.emulator.core.types import NodeId
from laststand.emulator.plan import actions
from laststand.emulator.simulator.disk.power_loss import undoes_names

_NAMES: Final = (effects.CreateLog, effects.DeleteLog, effects.RenameStrayLog, effects.DeleteStrayLog)
"""Effects that change the name of a directory."""


def done_before(crash: actions.CrashWithin[NodeId], turn: Sequence[effects.Effect]) -> list[effects.Effect] | None:
    """Returns the effects of a turn that are executed before the crash; ``None`` if the turn does not crash.

    A turn with fewer file effects crashes after its last one. If the power goes and ``names`` says so, an unsynced
    change of a directory's name is undone: that effect is then left out.
    """
    files = [effect for effect in turn if isinstance(effect, effects.FileEffect)]
    if all(
        isinstance(effect, effects.WriteHighWatermarks | effects.WriteLogCheckpoints | effects.RecoverLog)
        for effect in files
    ):
        return None
    done: list[effects.Effect] = [*files[: crash.after_effects]]
    is_undone = crash.loss is not None and undoes_names(crash.loss)
    if is_undone and done and isinstance(done[-1], _NAMES):
        done.pop()
    return done
