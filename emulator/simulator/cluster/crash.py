"""A process that dies within a turn: some of the turn's file effects are executed, and no later effect.

So no event and no message reports what the turn did to the logs. Turns that only rewrite checkpoints are passed over: a
crash after them is the same as a kill between turns.
"""

from collections.abc import Sequence

from laststand.emulator.core.broker.replicas.turn import FileEffect
from laststand.emulator.core.effects import (
    CreateLog,
    DeleteLog,
    DeleteStrayLog,
    Effect,
    RecoverLog,
    RenameStrayLog,
    WriteHighWatermarks,
    WriteLogCheckpoints,
)
from laststand.emulator.core.types import NodeId
from laststand.emulator.plan import actions
from laststand.emulator.simulator.disk.power_loss import undoes_names


def done_before(crash: actions.CrashWithin[NodeId], effects: Sequence[Effect]) -> list[Effect] | None:
    """Returns the effects of a turn that are executed before the crash; ``None`` if the turn does not crash.

    A turn with fewer file effects crashes after its last one. If the power goes and ``names`` says so, an unsynced
    change of a directory's name is undone: that effect is then left out.
    """
    files: list[Effect] = [effect for effect in effects if isinstance(effect, FileEffect)]
    if all(isinstance(effect, WriteHighWatermarks | WriteLogCheckpoints | RecoverLog) for effect in files):
        return None
    done = files[: crash.after_effects]
    is_undone = crash.loss is not None and undoes_names(crash.loss)
    if is_undone and done and isinstance(done[-1], CreateLog | DeleteLog | RenameStrayLog | DeleteStrayLog):
        done.pop()
    return done
