"""Profiles: which moves a schedule prefers, on which clusters.

A *move* is a short sequence of actions with one intention; ``moves`` has them by name. A profile gives each a weight. A
*swarm* draw switches half of the fault moves off and scales the others, so that rare combinations get room (swarm
testing); moves that make progress are never switched off.
"""

from collections.abc import Mapping
from enum import Enum
from random import Random
from typing import Final

import msgspec

from emulator.core.broker.replica_selector import RACK_AWARE
from emulator.storage.power_loss_plan import TruncationFate

PROGRESS: Final = frozenset(
    {"produce", "produce_one", "step", "pass", "linger", "start", "release", "rejoin", "heal", "fork", "bounce"}
)
"""Moves without which no work is done, or no fault ends."""


class Budget(Enum):
    """Whether moves may break more than the guarantee covers."""

    WITHIN = "within"
    """Never more replicas outstanding than the guarantee covers: every loss is a finding."""

    BEYOND = "beyond"
    """Anything: losses are expected, wrong order, wrong data and no convergence are findings."""


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """How schedules are drawn.

    Attributes:
        name: as given to ``--profile``.
        weights: relative frequency of moves; a move that is not named does not occur.
        moves: how many of them, at most.
        brokers: to choose from.
        min_isr: to choose from, at most the replication factor.
        partitions: at most.
        budget: whether moves may break more than the guarantee covers.
        fates: what may become of truncations that were not synced, when the power goes.
        properties: of every node, by Kafka's name.
        spreads: names of ``spreads.SPREADS``, from which half of the schedules draw further properties.
    """

    name: str
    weights: Mapping[str, int]
    moves: int = 48
    brokers: tuple[int, ...] = (3, 3, 4)
    min_isr: tuple[int, ...] = (2,)
    partitions: int = 1
    budget: Budget = Budget.WITHIN
    fates: tuple[TruncationFate, ...] = (TruncationFate.KEPT, TruncationFate.UNDONE)
    properties: tuple[tuple[str, str], ...] = ()
    spreads: tuple[str, ...] = ()


_COMMON: Final = {
    "produce": 24,
    "produce_one": 4,
    "step": 14,
    "pass": 14,
    "linger": 4,
    "start": 8,
    "release": 8,
    "rejoin": 5,
    "heal": 1,
    "fork": 3,
    "bounce": 2,
}

_WITHOUT_CRASHES: Final = {name: weight for name, weight in _COMMON.items() if name != "bounce"}
"""No broker ends uncleanly: what is promised then holds without eligible leader replicas, too."""

READS_FROM_FOLLOWERS: Final = (("broker.rack", "rack-{node}"), ("replica.selector.class", RACK_AWARE))
"""Every broker is in a rack of its own, and so is a consumer beside it (KIP-392)."""

PROFILES: Final = {
    profile.name: profile
    for profile in (
        Profile(
            name="steady",
            spreads=("times", "limits"),
            weights={**_COMMON, "slow": 3, "hold_fetch": 3, "reset": 3, "lose_held": 1, "clock": 1, "stop": 1},
            partitions=2,
            min_isr=(1, 2),
        ),
        Profile(
            name="isr-churn",
            spreads=("times",),
            weights={
                **_COMMON,
                "lag": 8,
                "hold_alter_partition": 9,
                "hold_fetch": 4,
                "expire": 6,
                "hold_stream": 4,
                "bounce": 3,
                "cut": 3,
                "lose_held": 2,
                "release_one": 3,
                "duplicate_held": 3,
                "race_shrink": 3,
                "race_expand": 3,
            },
            moves=34,
            brokers=(3,),
        ),
        Profile(
            name="elections",
            spreads=("times", "limits"),
            weights={
                **_COMMON,
                "depose": 9,
                "expire": 3,
                "behind": 3,
                "hold_stream": 8,
                "hold_fetch": 4,
                "release_newest": 4,
                "release_one": 4,
                "duplicate_held": 2,
                "pause": 2,
                "resume": 3,
                "isolate": 3,
                "produce_one": 10,
            },
        ),
        Profile(
            name="restarts",
            spreads=("times", "limits"),
            weights={
                **_COMMON,
                "kill": 4,
                "power_loss": 6,
                "bounce": 7,
                "crash_within": 5,
                "stop": 3,
                "sync": 2,
                "replace_disk": 2,
                "race_proof": 2,
                "expire": 3,
                "depose": 3,
                "hold_stream": 2,
                "hold_fetch": 2,
                "lag": 3,
            },
        ),
        Profile(
            name="controller",
            spreads=("times",),
            weights={
                **_COMMON,
                "kill_controller": 5,
                "power_loss_controller": 4,
                "hold_sync": 4,
                "pause_controller": 2,
                "resume": 3,
                "depose": 3,
                "expire": 3,
                "bounce": 2,
                "hold_alter_partition": 3,
                "lag": 2,
            },
        ),
        Profile(
            name="partitions",
            spreads=("times", "limits"),
            weights={
                **_COMMON,
                "isolate": 6,
                "cut": 6,
                "lose_responses": 4,
                "reset": 3,
                "pause": 3,
                "resume": 4,
                "clock": 2,
                "depose": 2,
                "power_loss": 2,
            },
            brokers=(3, 4, 5),
            min_isr=(2, 3),
            partitions=2,
        ),
        Profile(
            name="last-standing",
            spreads=("times",),
            weights={
                **_COMMON,
                "isolate": 9,
                "linger": 9,
                "bounce": 5,
                "power_loss": 5,
                "rejoin": 6,
                "produce_one": 10,
            },
            brokers=(3,),
            moves=26,
        ),
        Profile(
            name="min-isr",
            weights={
                **_COMMON,
                "min_isr": 6,
                "race_min_isr": 4,
                "race_raised": 3,
                "lag": 6,
                "expire": 4,
                "depose": 4,
                "bounce": 3,
                "isolate": 4,
                "hold_alter_partition": 3,
            },
            brokers=(3,),
            min_isr=(1, 2, 3),
            moves=34,
        ),
        Profile(
            name="reassignment",
            weights={
                **_COMMON,
                "reassign": 8,
                "race_reassign": 5,
                "race_replication_factor": 3,
                "race_recreate": 3,
                "race_produce": 2,
                "recreate": 1,
                "crash_within": 2,
                "lag": 4,
                "expire": 4,
                "depose": 3,
                "bounce": 3,
                "stop": 2,
                "hold_alter_partition": 3,
                "hold_stream": 3,
            },
            brokers=(3, 4, 5),
            partitions=2,
            moves=34,
            properties=(("stray.delete.delay.ms", "500"),),
        ),
        Profile(
            name="administrator",
            spreads=("times", "limits"),
            weights={
                **_COMMON,
                "elect_preferred": 2,
                "elect_member": 8,
                "elect_anybody": 1,
                "resize": 5,
                "reassign": 3,
                "cancel": 2,
                "create_partitions": 1,
                "cluster_min_isr": 2,
                "min_isr": 2,
                "strategy": 2,
                "broker_config": 2,
                "unregister": 2,
                "behind": 6,
                "hold_stream": 5,
                "release_newest": 3,
                "cut": 4,
                "isolate": 2,
                "expire": 3,
                "lag": 3,
                "bounce": 3,
                "power_loss": 2,
                "crash_within": 2,
                "kill_controller": 2,
            },
            brokers=(3, 4, 5),
            partitions=2,
            moves=34,
        ),
        Profile(
            name="features",
            spreads=("times",),
            weights={
                **_WITHOUT_CRASHES,
                "features": 6,
                "behind": 5,
                "elect_member": 5,
                "resize": 3,
                "reassign": 3,
                "cluster_min_isr": 2,
                "broker_config": 2,
                "hold_alter_partition": 4,
                "hold_stream": 4,
                "release_newest": 3,
                "cut": 4,
                "expire": 4,
                "lag": 4,
                "stop": 2,
                "kill_controller": 1,
            },
            brokers=(3, 4),
            partitions=2,
            moves=34,
        ),
        Profile(
            name="races",
            weights={
                **_COMMON,
                "race_shrink": 8,
                "race_expand": 8,
                "race_cut": 8,
                "race_roles": 8,
                "race_refusal": 8,
                "race_term": 8,
                "hold_stream": 4,
                "depose": 4,
                "crash_within": 3,
            },
            brokers=(3,),
            moves=24,
        ),
        Profile(
            name="cancelled",
            weights={**_COMMON, "race_cancel": 8, "reassign": 3, "depose": 3, "lag": 2},
            brokers=(4, 5),
            min_isr=(1, 2),
            moves=24,
            properties=(("unclean.leader.election.enable", "true"),),
        ),
        Profile(
            name="downgrade",
            weights={**_COMMON, "race_downgrade": 5, "depose": 2},
            brokers=(3,),
            moves=20,
        ),
        Profile(
            name="readers",
            weights={**_COMMON, "race_readers": 8, "depose": 3, "hold_fetch": 3, "lag": 2},
            brokers=(3,),
            moves=20,
            properties=(*READS_FROM_FOLLOWERS, ("auto.leader.rebalance.enable", "false")),
        ),
        Profile(
            name="all-down",
            spreads=("times",),
            weights={
                **_COMMON,
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
                **_COMMON,
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
                ("unclean.recovery.timeout.ms", "400"),
                ("leader.recovery.min.ms", "50"),
            ),
        ),
        Profile(
            name="unclean",
            spreads=("times",),
            weights={
                **_COMMON,
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
            weights={**_COMMON, "race_pick": 6, "race_recovering": 6, "depose": 2},
            budget=Budget.BEYOND,
            brokers=(3,),
            moves=20,
            properties=(("unclean.leader.election.enable", "true"), ("leader.recovery.min.ms", "1500")),
        ),
    )
}
"""By name."""


def swarm(profile: Profile, random: Random) -> Profile:
    """Returns the profile with about half of its fault moves off and the others scaled."""
    weights: dict[str, int] = {}
    for move, weight in profile.weights.items():
        if move in PROGRESS:
            weights[move] = weight
        elif random.random() < 0.6:
            weights[move] = max(1, round(weight * random.choice((0.5, 1, 1, 2, 4))))
    return msgspec.structs.replace(profile, weights=weights)
