"""A cluster that another party runs, as it described itself before the run."""

from collections.abc import Mapping
from typing import Final

import msgspec

from laststand.emulator.core.types import BrokerId

_ELR_FEATURE: Final = "eligible.leader.replicas.version"
_ERA_WITH_ELR: Final = "kafka-4.2"
_ERA_BEFORE: Final = "kafka-3.9"


class ExternalCluster(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster that another party runs.

    Attributes:
        addresses: that brokers advertise.
        features: finalized levels, by name.
        broker_numbers: the cluster's own ids of brokers, if a scenario has others.
    """

    cluster_id: str
    addresses: Mapping[BrokerId, str]
    features: Mapping[str, int]
    broker_numbers: Mapping[int, int] = {}

    def numbered_as(self, broker_ids: tuple[BrokerId, ...]) -> "ExternalCluster":
        """Returns the cluster with its brokers numbered like a scenario's, in order."""
        pairs = list(zip(sorted(broker_ids), sorted(self.addresses), strict=True))
        return msgspec.structs.replace(
            self,
            addresses={ours: self.addresses[theirs] for ours, theirs in pairs},
            broker_numbers={int(ours): int(theirs) for ours, theirs in pairs if ours != theirs},
        )

    @property
    def nearest_era(self) -> str:
        """The era whose rules judge the cluster if the user names none."""
        return _ERA_WITH_ELR if self.features.get(_ELR_FEATURE) else _ERA_BEFORE
