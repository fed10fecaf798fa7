"""The bundled analyses: functions from runs, as ``laststand.read_runs`` returns them, to a DataFrame.

docs/analyses.md describes each of them.
"""

from laststand.emulator.analysis.analyses import (
    acks_outcomes,
    elections,
    elr_cost,
    failover_times,
    failovers,
    isr_sizes,
    records_at_risk,
    replica_lag,
)

__all__ = [
    "acks_outcomes",
    "elections",
    "elr_cost",
    "failover_times",
    "failovers",
    "isr_sizes",
    "records_at_risk",
    "replica_lag",
]
