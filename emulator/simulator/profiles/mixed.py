"""Profiles for clusters whose nodes follow several eras; used only if they are named."""

from typing import Final

from laststand.emulator.simulator.profiles.profile import COMMON, WITHOUT_CRASHES, Profile

_ROLLS: Final = {
    "roll": 9,
    "roll_controller": 4,
    "depose": 3,
    "expire": 3,
    "lag": 4,
    "hold_alter_partition": 3,
    "hold_stream": 3,
    "reassign": 2,
}

MIXED: Final = (
    Profile(
        name="mixed",
        weights={**WITHOUT_CRASHES, **_ROLLS, "turn_elr": 3, "cut": 4, "stop": 2},
        brokers=(3, 4),
        partitions=2,
        moves=34,
    ),
    Profile(
        name="mixed-crashes",
        weights={**COMMON, **_ROLLS, "crash_and_roll": 7, "power_loss": 2, "kill_controller": 2},
        brokers=(3, 4),
        partitions=2,
        moves=34,
    ),
)
"""Rolling upgrades and downgrades: through a release without ELR, and with nodes that fail on the way."""
