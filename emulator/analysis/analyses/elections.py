"""Elections by their reason, and by how the leader was chosen."""

from typing import TYPE_CHECKING, Final

from laststand.emulator.analysis.runs import Runs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_QUERY: Final = """
SELECT run, scenario, era, seed, reason, election, count(*) AS elections,
       count(DISTINCT topic_id, partition) AS partitions, min(time_s) AS first_s, max(time_s) AS last_s
FROM partition_changes
WHERE election <> 'none' AND reason <> 'created'
GROUP BY run, scenario, era, seed, reason, election
ORDER BY run, elections DESC, reason, election
"""


def elections(runs: Runs) -> "DataFrame":
    """Returns the number of elections of each run, by reason and by how the leader was chosen.

    ``no_candidate`` means that the partition was left without a leader. The creation of a partition counts as no
    election.
    """
    return runs.sql(_QUERY)
