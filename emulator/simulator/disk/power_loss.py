"""Draws the losses of a power loss on one broker's disk, if the plan leaves them to chance."""

from random import Random

from laststand.emulator.core.disk import ExactLoss, Keep, NamesFate, TruncationFate
from laststand.emulator.core.types import NodeId
from laststand.emulator.plan.power import DiskLoss
from laststand.emulator.simulator.disk.disk import Disk, unsynced_batches


def exact_loss(loss: DiskLoss, node_id: NodeId, disk: Disk) -> ExactLoss:
    """Returns the loss of a broker's disk: the plan's, or one drawn from the seed of that broker."""
    if loss.exact is not None:
        return loss.exact
    chance = Random(loss.seed_of(node_id))
    is_undone = loss.keep is Keep.NONE or chance.random() < 0.5
    return ExactLoss(
        kept=chance.randrange(max(1, unsynced_batches(disk))),
        truncation=TruncationFate.UNDONE if is_undone else TruncationFate.KEPT,
    )


def undoes_names(loss: DiskLoss) -> bool:
    """Returns whether unsynced changes of names are undone, which is the default."""
    return loss.exact is None or loss.exact.names is NamesFate.UNDONE
