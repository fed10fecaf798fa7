"""A cluster that somebody else runs, as it described itself before the run."""

from collections.abc import Mapping

import msgspec

from laststand.emulator.core.types import BrokerId


class ExternalCluster(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster that somebody else runs.

    Attributes:
        addresses: that brokers advertise.
        features: finalized levels, by name.
    """

    cluster_id: str
    addresses: Mapping[BrokerId, str]
    features: Mapping[str, int]
