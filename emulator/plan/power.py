"""The notation of a power loss in a plan."""

import random
from typing import Final

import msgspec

from laststand.emulator.core.disk import DiskModel, ExactLoss, Keep
from laststand.emulator.core.types import NodeId

SEED_BITS: Final = 31


class DiskLoss(msgspec.Struct, frozen=True, kw_only=True):
    """The unsynced bytes that a power loss leaves.

    Attributes:
        keep: the shape.
        seed: of the random choices; ``None`` if there are none, or if the driver chooses the seed.
        exact: the loss, if it is not random.
        disk: the file system. Invariant: one with an ordered journal treats truncations and names alike.
    """

    keep: Keep
    seed: int | None = None
    exact: ExactLoss | None = None
    disk: DiskModel = DiskModel.POSIX

    def seed_of(self, node_id: NodeId) -> int:
        """Returns the seed of one node's choices."""
        return random.Random(f"{self.seed}:node-{node_id}").getrandbits(SEED_BITS)
