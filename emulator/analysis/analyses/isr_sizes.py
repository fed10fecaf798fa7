"""ISR and ELR sizes over time: one row per committed state of a partition, in order, with how long it lasted."""

from typing import TYPE_CHECKING, Final

from laststand.emulator.analysis.runs import Runs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_QUERY: Final = """
SELECT run, scenario, era, seed, topic, partition, time_s, end_s, leader,
       size(replicas) AS replicas, effective_min_isr AS min_isr,
       size(isr) AS isr_size, size(elr) AS elr_size, isr, elr
FROM partition_changes
ORDER BY run, topic, partition, time_s, metadata_offset
"""


def isr_sizes(runs: Runs) -> "DataFrame":
    """Returns every committed state: when it began and ended, who led, min ISR, ISR and ELR with their sizes.

    The times are seconds since the run's first event.
    """
    return runs.sql(_QUERY)
