"""The profile of segments: small ones, which roll and expire while brokers lose power."""

from typing import Final

from laststand.emulator.simulator.profiles.profile import COMMON, Profile

SEGMENTS: Final = Profile(
    name="segments",
    weights={
        **COMMON,
        "endure": 1,
        "kill": 2,
        "power_loss": 6,
        "bounce": 8,
        "crash_within": 3,
        "stop": 1,
        "sync": 1,
        "depose": 6,
        "elect_member": 2,
        "lag": 2,
    },
    spreads=("times", "segments"),
)
"""Drawn only where it is named: in all others nothing expires."""
