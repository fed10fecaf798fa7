"""Profiles for clusters with several controllers; used only if they are named."""

from typing import Final

import msgspec

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
        "lose_quorum_state": 2,
        "isolate_voter": 3,
        "hold_voter_sync": 5,
        "hold_vote": 3,
        "depose": 3,
        "expire": 3,
        "lag": 3,
    },
)
"""Controllers lose power, and one of them its disk."""

QUORUM_VOTERS: Final = Profile(
    name="quorum-voters",
    controllers=3,
    weights={
        **COMMON,
        "add_voter": 6,
        "remove_voter": 4,
        "remove_and_add_voter": 5,
        "remove_two_voters": 3,
        "replace_disk_in_order": 4,
        "kill_voter": 4,
        "power_loss_voters": 3,
        "isolate_voter": 4,
        "cut_voters": 3,
        "hold_vote": 3,
        "hold_voter_sync": 3,
        "depose": 2,
        "expire": 3,
        "lag": 3,
    },
)
"""Voters are removed and added, the leader and one with another disk among them."""

QUORUM_COMBINED: Final = msgspec.structs.replace(QUORUM, name="quorum-combined", combined=True)
"""The first, with a broker and a controller in one process: each loss of one is a loss of the other."""

QUORUMS: Final = (QUORUM, QUORUM_DISKS, QUORUM_VOTERS, QUORUM_COMBINED)
"""All of them."""
