"""Measures the lag of each replica at each election.

A replica's log end comes from its own last event before the election, or from the harness's scan after a power loss.
The *committed* end is the highest high watermark that any leader had until then. Offsets do not show whether a log's
records are the committed ones: a replica with records of another leader epoch may lack more than its log end shows.
"""

from typing import TYPE_CHECKING, Final

from laststand.emulator.analysis.runs import Runs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_QUERY: Final = """
WITH elections AS (
    SELECT * FROM partition_changes
    WHERE election NOT IN ('none', 'no_candidate') AND reason <> 'created'
), log_ends AS (
    SELECT run, topic_id, partition, node, time_ns, incarnation, sequence, last_offset + 1 AS log_end_offset
    FROM batch_appended
    UNION ALL SELECT run, topic_id, partition, node, time_ns, incarnation, sequence, new_end_offset FROM log_truncated
    UNION ALL SELECT run, topic_id, partition, node, time_ns, incarnation, sequence, log_end_offset FROM log_opened
    UNION ALL SELECT run, topic_id, partition, lost_node, time_ns, lost_incarnation, sequence, new_end_offset
    FROM power_lost
), high_ends AS (
    SELECT run, topic_id, partition, time_ns, new AS high_watermark FROM high_watermarks WHERE role = 'leader'
), committed AS (
    SELECT run, topic_id, partition, time_ns, metadata_offset,
           max(high_watermark) OVER (
               PARTITION BY run, topic_id, partition ORDER BY time_ns RANGE UNBOUNDED PRECEDING
           ) AS committed_end_offset
    FROM (
        SELECT run, topic_id, partition, time_ns, NULL AS metadata_offset, high_watermark FROM high_ends
        UNION ALL SELECT run, topic_id, partition, time_ns, metadata_offset, NULL FROM elections
    )
), asked AS (
    SELECT run, topic_id, partition, replica AS node, time_ns, metadata_offset
    FROM elections LATERAL VIEW explode(replicas) AS replica
), answered AS (
    SELECT run, topic_id, partition, node, metadata_offset,
           last_value(log_end_offset, true) OVER (
               PARTITION BY run, topic_id, partition, node ORDER BY time_ns, is_question, incarnation, sequence
           ) AS log_end_offset
    FROM (
        SELECT run, topic_id, partition, node, time_ns, 0 AS is_question, incarnation, sequence, log_end_offset,
               NULL AS metadata_offset FROM log_ends
        UNION ALL
        SELECT run, topic_id, partition, node, time_ns, 1, NULL, NULL, NULL, metadata_offset FROM asked
    )
)
SELECT e.run, e.scenario, e.era, e.seed, e.topic, e.partition, e.time_s, e.leader_epoch, e.election, e.reason,
       a.node AS replica, a.node = e.leader AS is_leader,
       array_contains(e.previous_isr, a.node) AS was_in_isr, array_contains(e.previous_elr, a.node) AS was_in_elr,
       a.log_end_offset, coalesce(c.committed_end_offset, 0) AS committed_end_offset,
       greatest(coalesce(c.committed_end_offset, 0) - a.log_end_offset, 0) AS behind
FROM elections e
JOIN answered a USING (run, topic_id, partition, metadata_offset)
JOIN committed c USING (run, topic_id, partition, metadata_offset)
ORDER BY e.run, e.topic, e.partition, e.time_s, e.metadata_offset, a.node
"""


def replica_lag(runs: Runs) -> "DataFrame":
    """Returns each replica at each election, with its log end and how many committed records it lacked (``behind``).

    ``log_end_offset`` and ``behind`` are null for a replica that had no log yet. The creation of a partition is no
    election.
    """
    return runs.sql(_QUERY)
