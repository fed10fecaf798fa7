"""Profiles of transactions: they are drawn only where they are named."""

from typing import Final

from laststand.emulator.simulator.profiles.profile import COMMON, WITHOUT_CRASHES, Profile

TRANSACTIONS: Final = (
    Profile(
        name="transactions",
        weights={
            **WITHOUT_CRASHES,
            "produce": 6,
            "transact": 24,
            "outlast": 10,
            "overtake": 14,
            "hold_end": 9,
            "hold_between_brokers": 6,
            "hold_produce": 4,
            "hold_fetch": 2,
            "hold_stream": 2,
            "release": 12,
            "release_one": 8,
            "release_newest": 8,
            "duplicate_held": 6,
            "lose_held": 3,
            "lose_responses": 2,
            "reset": 3,
            "depose": 2,
        },
        brokers=(3,),
        partitions=3,
        has_transactions=True,
    ),
    Profile(
        name="transactions-restarts",
        weights={
            **COMMON,
            "produce": 6,
            "transact": 24,
            "outlast": 8,
            "hold_end": 4,
            "hold_between_brokers": 6,
            "hold_fetch": 3,
            "hold_stream": 3,
            "hold_alter_partition": 3,
            "kill": 4,
            "power_loss": 5,
            "stop": 3,
            "depose": 4,
            "expire": 4,
            "release_one": 5,
            "lose_held": 2,
            "reset": 2,
        },
        partitions=3,
        has_transactions=True,
    ),
)
