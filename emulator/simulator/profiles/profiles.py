"""All profiles, by name; their order decides which profile a seed selects, in KRaft and ZooKeeper clusters."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from laststand.emulator.core.eras import era_kind
from laststand.emulator.core.types import ClusterKind
from laststand.emulator.simulator.profiles.administrators import ADMINISTRATORS
from laststand.emulator.simulator.profiles.faults import FAULTS
from laststand.emulator.simulator.profiles.mixed import MIXED
from laststand.emulator.simulator.profiles.profile import Profile
from laststand.emulator.simulator.profiles.quorum import QUORUMS
from laststand.emulator.simulator.profiles.races import RACES
from laststand.emulator.simulator.profiles.segments import SEGMENTS
from laststand.emulator.simulator.profiles.transactions import TRANSACTIONS
from laststand.emulator.simulator.profiles.unclean import BEYOND
from laststand.emulator.simulator.profiles.zookeeper import STRAYS, ZOOKEEPER

PROFILES: Final[Mapping[str, Profile]] = MappingProxyType(
    {profile.name: profile for profile in (*FAULTS, *ADMINISTRATORS, *RACES, *BEYOND)}
)
"""The profiles for KRaft clusters, by name."""

ZOOKEEPER_PROFILES: Final[Mapping[str, Profile]] = MappingProxyType({profile.name: profile for profile in ZOOKEEPER})
"""The profiles for ZooKeeper clusters, by name."""

_PROFILES: Final[Mapping[ClusterKind, Mapping[str, Profile]]] = MappingProxyType(
    {ClusterKind.KRAFT: PROFILES, ClusterKind.ZOOKEEPER: ZOOKEEPER_PROFILES}
)

ALL_PROFILES: Final[Mapping[str, Profile]] = MappingProxyType(
    {
        **PROFILES,
        **ZOOKEEPER_PROFILES,
        **{profile.name: profile for profile in (STRAYS, *QUORUMS, *TRANSACTIONS, *MIXED, SEGMENTS)},
    }
)
"""All profiles, and those that are drawn only where they are named."""


def profiles_of(era: str) -> tuple[str, ...]:
    """Returns the names of the profiles that are made for an era."""
    return tuple(_PROFILES[era_kind(era)])
