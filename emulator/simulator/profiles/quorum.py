"""Profiles for clusters with several controllers; drawn only where they are named."""

from typing import Final

from laststand.emulator.simulator.profiles.profile import COMMON, Profile

QUORUM: Final = Profile(
    name="quorum",
    controllers=3,
    weights={
        **COMMON,
        "kill_voter": 5,
        "power_loss_voters": 4,
        "cut_voters": 4,
        "isolate_voter": 5,
        "hold_vote": 4,
        "hold_voter_sync": 3,
        "pause_voter": 3,
        "late_answer": 4,
        "resume": 4,
        "depose": 3,
        "expire": 3,
        "lag": 3,
        "hold_alter_partition": 3,
        "hold_session": 2,
        "isolate": 2,
    },
)
"""Controllers fail over while brokers come and go."""

QUORUM_DISKS: Final = Profile(
    name="quorum-disks",
    controllers=3,
    weights={
        **COMMON,
        "kill_voter": 5,
        "power_loss_voters": 7,
        "replace_voters_disk": 2,
        "replace_disk_while_another_lags": 3,
        "isolate_voter": 3,
        "hold_voter_sync": 5,
        "hold_vote": 3,
        "depose": 3,
        "expire": 3,
        "lag": 3,
    },
)
"""Controllers lose power, and one of them its disk."""
