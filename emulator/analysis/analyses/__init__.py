"""The bundled analyses: functions from runs to a DataFrame, by the names that ``laststand analyze`` takes."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

from laststand.emulator.analysis.analyses.acks_outcomes import acks_outcomes
from laststand.emulator.analysis.analyses.elections import elections
from laststand.emulator.analysis.analyses.elr_cost import elr_cost
from laststand.emulator.analysis.analyses.failovers import failover_times, failovers
from laststand.emulator.analysis.analyses.isr_sizes import isr_sizes
from laststand.emulator.analysis.analyses.records_at_risk import records_at_risk
from laststand.emulator.analysis.analyses.replica_lag import replica_lag
from laststand.emulator.analysis.runs import Runs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Analysis: TypeAlias = Callable[[Runs], "DataFrame"]

ANALYSES: Final[Mapping[str, Analysis]] = {
    "isr-sizes": isr_sizes,
    "elections": elections,
    "failovers": failovers,
    "failover-times": failover_times,
    "replica-lag": replica_lag,
    "records-at-risk": records_at_risk,
    "acks-outcomes": acks_outcomes,
    "elr-cost": elr_cost,
}

__all__ = [
    "ANALYSES",
    "Analysis",
    "acks_outcomes",
    "elections",
    "elr_cost",
    "failover_times",
    "failovers",
    "isr_sizes",
    "records_at_risk",
    "replica_lag",
]
