"""Measures the records that eligible leader replicas kept, and the time for which partitions waited for them.

A partition whose last leader is gone waits for a member of its ELR. Without the ELR it would have waited for the last
leader, and continued with the records that this leader still had. *Kept* records are the committed records that the
leader from the ELR held beyond the log end of the last known leader at that moment.
"""

from typing import TYPE_CHECKING, Final

from laststand.emulator.analysis.analyses.replica_lag import replica_lag
from laststand.emulator.analysis.runs import Runs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_QUERY: Final = """
WITH waits AS (
    SELECT a.run, a.scenario, a.era, a.seed, a.topic, a.partition, a.topic_id, a.time_s, a.end_s, a.duration_s,
           max_by(c.elr, size(c.elr)) AS elr, min_by(c.previous_leader, c.metadata_offset) AS last_leader,
           min_by(c.reason, c.metadata_offset) AS reason
    FROM availability a
    JOIN partition_changes c ON c.run = a.run AND c.topic_id = a.topic_id AND c.partition = a.partition
        AND c.leader IS NULL AND c.time_s >= a.time_s AND c.time_s < a.end_s
    WHERE a.state = 'leaderless'
    GROUP BY ALL
    HAVING max(size(c.elr)) > 0
)
SELECT w.run, w.scenario, w.era, w.seed, w.topic, w.partition, w.time_s, w.duration_s AS waited_s, w.elr,
       w.last_leader, n.leader, n.election,
       CASE
           WHEN n.election = 'elr' THEN greatest(
               least(l.log_end_offset, l.committed_end_offset) - coalesce(p.log_end_offset, 0), 0
           )
           WHEN n.election IS NOT NULL THEN 0
       END AS kept
FROM waits w
LEFT JOIN partition_changes n ON n.run = w.run AND n.topic_id = w.topic_id AND n.partition = w.partition
    AND n.time_s = w.end_s AND n.previous_leader IS NULL AND n.leader IS NOT NULL
LEFT JOIN {lag} l ON l.run = w.run AND l.topic = w.topic AND l.partition = w.partition AND l.time_s = n.time_s
    AND l.leader_epoch = n.leader_epoch AND l.is_leader
LEFT JOIN {lag} p ON p.run = w.run AND p.topic = w.topic AND p.partition = w.partition AND p.time_s = n.time_s
    AND p.leader_epoch = n.leader_epoch AND p.replica = w.last_leader
WHERE n.leader IS NOT NULL OR w.reason <> 'controlled_shutdown'
ORDER BY run, time_s, topic, partition
"""


def elr_cost(runs: Runs) -> "DataFrame":
    """Returns each period in which a partition with an ELR had no leader: its length, and the records that were kept.

    ``kept`` is 0 if the leader did not come from the ELR. ``leader``, ``election`` and ``kept`` are null if the run
    ended first; the orderly stop of all brokers at the end of a run is left out.
    """
    return runs.sql(_QUERY, lag=replica_lag(runs))
