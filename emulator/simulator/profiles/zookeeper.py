"""Profiles for ZooKeeper clusters: faults of sessions, control requests and controllers.

Only the profile ``zk-power-losses`` loses unsynced data or disks: in all of these eras the last replica standing leads
with whatever it holds, so both lose records within the guarantee (KIP-966, Motivation).
"""

from typing import Final

from laststand.emulator.simulator.profiles.profile import COMMON, WITHOUT_CRASHES, Profile

_SESSIONS: Final = {
    **WITHOUT_CRASHES,
    "expire_session": 4,
    "cut_off": 6,
    "reset_zookeeper": 2,
    "slow_zookeeper": 2,
    "zombie_controller": 4,
    "zookeeper_down": 2,
    "hold_steps": 3,
    "release_one": 3,
    "lose_held": 1,
    "pause": 1,
    "resume": 3,
}

ZOOKEEPER: Final = (
    Profile(name="zk-sessions", spreads=("zookeeper-times",), weights=_SESSIONS),
    Profile(
        name="zk-control",
        spreads=("zookeeper-times",),
        weights={
            **WITHOUT_CRASHES,
            "hold_control": 9,
            "cut_control": 4,
            "hold_isr": 4,
            "hold_fetch": 2,
            "release_one": 4,
            "release_newest": 2,
            "duplicate_held": 4,
            "lose_held": 3,
            "lag": 4,
            "expire_session": 4,
            "zombie_controller": 2,
            "elect_preferred": 4,
        },
        brokers=(3, 4),
        partitions=2,
    ),
    Profile(
        name="zk-isr",
        spreads=("zookeeper-times",),
        weights={
            **WITHOUT_CRASHES,
            "race_own_write": 6,
            "cut_off": 3,
            "hold_steps": 4,
            "hold_isr": 4,
            "hold_fetch": 3,
            "lag": 6,
            "elect_preferred": 3,
            "expire_session": 2,
            "release_one": 3,
            "lose_held": 2,
        },
        min_isr=(1, 2),
        brokers=(3, 4),
        partitions=2,
        moves=36,
    ),
    Profile(
        name="zk-restarts",
        spreads=("zookeeper-times",),
        weights={**_SESSIONS, "kill": 5, "stop": 4, "lag": 2, "hold_control": 2},
    ),
    Profile(
        name="zk-reassignment",
        spreads=("zookeeper-times",),
        weights={
            **WITHOUT_CRASHES,
            "reassign": 8,
            "cancel": 3,
            "stop": 3,
            "hold_control": 5,
            "duplicate_held": 4,
            "release_one": 3,
            "recreate": 1,
            "expire_session": 3,
            "lag": 2,
        },
        brokers=(4,),
        partitions=2,
    ),
    Profile(
        name="zk-power-losses",
        spreads=("zookeeper-times",),
        weights={
            **COMMON,
            "power_loss": 5,
            "replace_disk": 2,
            "kill": 2,
            "bounce": 3,
            "expire_session": 3,
            "cut_off": 3,
            "lag": 3,
        },
    ),
    Profile(
        name="zk-races",
        spreads=("zookeeper-times",),
        weights={
            **WITHOUT_CRASHES,
            "race_own_write": 4,
            "race_zombie_write": 4,
            "race_late_stop": 4,
            "race_former_life": 4,
            "expire_session": 2,
            "hold_control": 2,
            "lag": 2,
        },
        min_isr=(1, 2),
        brokers=(4,),
        moves=24,
    ),
)

STRAYS: Final = Profile(
    name="zk-strays",
    spreads=("zookeeper-times",),
    weights={**WITHOUT_CRASHES, "race_stray": 8, "lag": 2},
    brokers=(4,),
    moves=16,
)
"""Drawn only where it is named: what it leads to is what releases do (Z13), and takes long to come to nothing."""
