"""Profiles that break more than the guarantee covers."""

from typing import Final

from laststand.emulator.simulator.profiles.profile import COMMON, Budget, Profile

BEYOND: Final = (
    Profile(
        name="all-down",
        weights={
            **COMMON,
            "endure": 1,
            "power_loss_all": 4,
            "kill_all": 2,
            "power_loss": 5,
            "bounce": 5,
            "crash_within": 4,
            "expire": 3,
            "kill": 3,
        },
        budget=Budget.BEYOND,
        partitions=2,
        brokers=(3, 4),
    ),
    Profile(
        name="recovery",
        weights={
            **COMMON,
            "endure": 1,
            "unclean_election": 2,
            "elect_anybody": 5,
            "elect_member": 2,
            "strategy": 2,
            "resize": 2,
            "unregister": 1,
            "behind": 2,
            "hold_session": 4,
            "power_loss_all": 4,
            "kill_all": 3,
            "power_loss": 5,
            "bounce": 5,
            "cut": 4,
            "expire": 3,
            "kill": 4,
            "kill_controller": 3,
            "race_last_known": 3,
        },
        budget=Budget.BEYOND,
        partitions=2,
        properties=(
            ("unclean.recovery.manager.enabled", "true"),
            ("leader.recovery.min.ms", "50"),
        ),
    ),
    Profile(
        name="unclean",
        weights={
            **COMMON,
            "endure": 1,
            "unclean_election": 3,
            "power_loss": 5,
            "bounce": 4,
            "isolate": 4,
            "depose": 4,
            "expire": 3,
            "kill": 5,
            "draw": 5,
            "kill_controller": 2,
        },
        budget=Budget.BEYOND,
        partitions=2,
        properties=(("unclean.leader.election.enable", "true"), ("leader.recovery.min.ms", "50")),
    ),
    Profile(
        name="unclean-races",
        weights={**COMMON, "race_pick": 6, "race_recovering": 6, "race_deleted": 6, "depose": 2},
        budget=Budget.BEYOND,
        brokers=(3,),
        moves=20,
        properties=(("unclean.leader.election.enable", "true"), ("leader.recovery.min.ms", "1500")),
    ),
)
