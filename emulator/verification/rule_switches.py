"""Which switch each rule check restates: the one table.

A rule check is judged only in runs whose switches all have the checked value; elsewhere the run promised nothing. One
without an entry holds in every era.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

RULE_SWITCHES: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "H2": MappingProxyType({"hw_requires_min_isr": "on"}),
        "M2": MappingProxyType({"elr": "on", "cancel_requires_min_isr": "on"}),
        "M3": MappingProxyType({"elr": "on"}),
        "M4": MappingProxyType({"elr": "on"}),
        "M5": MappingProxyType({"elr": "on", "unclean_detection": "on"}),
        "M10": MappingProxyType({"ap_partition_epoch_check": "on", "ap_broker_epoch_check": "on"}),
        "M11": MappingProxyType({"cancel_requires_min_isr": "on"}),
        "M17": MappingProxyType({"elr_within_replicas": "on"}),
        "M18": MappingProxyType({"recovering_gate": "on"}),
        "M19": MappingProxyType({"cancel_requires_min_isr": "on"}),
    }
)


def is_promised(check_id: str, switches: Mapping[str, str]) -> bool:
    """Whether a run with these switches has the rule that the check restates."""
    return all(switches.get(name) == value for name, value in RULE_SWITCHES.get(check_id, {}).items())
