"""All profiles, by name; their order decides which one a seed leads to."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from emulator.simulator.administrator_profiles import ADMINISTRATORS
from emulator.simulator.fault_profiles import FAULTS
from emulator.simulator.profile import Profile
from emulator.simulator.race_profiles import RACES
from emulator.simulator.unclean_profiles import BEYOND

PROFILES: Final[Mapping[str, Profile]] = MappingProxyType(
    {profile.name: profile for profile in (*FAULTS, *ADMINISTRATORS, *RACES, *BEYOND)}
)
"""By name."""
