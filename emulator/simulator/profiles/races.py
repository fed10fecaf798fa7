"""Profiles that play the known races, with a few faults around them."""

from typing import Final

from laststand.emulator.core.broker.replicas.replica_selector import RACK_AWARE
from laststand.emulator.simulator.profiles.profile import COMMON, Profile

READS_FROM_FOLLOWERS: Final = (("broker.rack", "rack-{node}"), ("replica.selector.class", RACK_AWARE))
"""Every broker is in a rack of its own, and so is a consumer beside it (KIP-392)."""

RACES: Final = (
    Profile(
        name="races",
        weights={
            **COMMON,
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
        weights={**COMMON, "race_cancel": 8, "reassign": 3, "depose": 3, "lag": 2},
        brokers=(4, 5),
        min_isr=(1, 2),
        moves=24,
        properties=(("unclean.leader.election.enable", "true"),),
    ),
    Profile(
        name="downgrade",
        weights={**COMMON, "race_downgrade": 5, "depose": 2},
        brokers=(3,),
        moves=20,
    ),
    Profile(
        name="readers",
        weights={**COMMON, "race_readers": 8, "depose": 3, "hold_fetch": 3, "lag": 2},
        brokers=(3,),
        moves=20,
        properties=(*READS_FROM_FOLLOWERS, ("auto.leader.rebalance.enable", "false")),
    ),
)
