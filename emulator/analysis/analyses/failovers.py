"""Measures the recovery of partitions from faults: one row per fault and partition, and figures over many runs.

Times count from the beginning of the fault. A *new leader* is the first leader of a later leader epoch; it only counts
if the fault hit the leader's node. The *first ack* is the first acknowledgement of a batch that was sent after the
fault began. If the fault hit the leader's node, acknowledgements of that node before the effect was seen do not count:
the fault may not have reached it yet. Events after the beginning of the next fault on the partition's leader belong to
that fault.
"""

from typing import TYPE_CHECKING, Final

from laststand.emulator.analysis.runs import Runs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_EACH: Final = """
WITH hits AS (
    SELECT f.run, f.scenario, f.era, f.seed, f.fault, f.targets, f.time_s, f.effect_s, c.topic, c.partition, c.topic_id,
           c.leader, c.leader_epoch, coalesce(array_contains(f.nodes, c.leader), false) AS on_leader
    FROM faults f
    JOIN partition_changes c ON c.run = f.run AND c.time_s <= f.time_s AND f.time_s < c.end_s
    WHERE f.had_effect
), bounded AS (
    SELECT *, coalesce(min(if(on_leader, time_s, NULL)) OVER (
        PARTITION BY run, topic_id, partition ORDER BY time_s RANGE BETWEEN 1e-9 FOLLOWING AND UNBOUNDED FOLLOWING
    ), double('Infinity')) AS next_s
    FROM hits
), elected AS (
    SELECT b.run, b.topic_id, b.partition, b.time_s, b.fault, b.targets, min(c.time_s) AS new_leader_s
    FROM bounded b
    JOIN partition_changes c ON c.run = b.run AND c.topic_id = b.topic_id AND c.partition = b.partition
        AND c.leader_epoch > b.leader_epoch AND c.leader IS NOT NULL AND c.time_s >= b.time_s AND c.time_s < b.next_s
    WHERE b.on_leader
    GROUP BY ALL
), acked AS (
    SELECT b.run, b.topic_id, b.partition, b.time_s, b.fault, b.targets, min(h.end_s) AS first_ack_s,
           min(if(h.acks = -1, h.end_s, NULL)) AS first_ack_all_s
    FROM bounded b
    JOIN history h ON h.run = b.run AND h.topic = b.topic AND h.partition = b.partition
        AND h.kind = 'send' AND h.outcome = 'ok' AND h.acks <> 0 AND h.time_s >= b.time_s AND h.end_s < b.next_s
        AND (NOT b.on_leader OR h.time_s >= b.effect_s OR element_at(h.attempts, -1).leader_epoch > b.leader_epoch)
    GROUP BY ALL
)
SELECT b.run, b.scenario, b.era, b.seed, b.fault, b.targets, b.topic, b.partition, b.time_s, b.on_leader, b.leader,
       e.new_leader_s - b.time_s AS to_new_leader_s,
       a.first_ack_s - b.time_s AS to_first_ack_s,
       a.first_ack_all_s - b.time_s AS to_first_ack_all_s
FROM bounded b
LEFT JOIN elected e USING (run, topic_id, partition, time_s, fault, targets)
LEFT JOIN acked a USING (run, topic_id, partition, time_s, fault, targets)
ORDER BY run, time_s, topic, partition
"""

_OVER_MANY: Final = """
SELECT era, fault, on_leader, count(DISTINCT run) AS runs, count(*) AS faults,
       count(to_new_leader_s) AS elected,
       percentile(to_new_leader_s, 0.5) AS new_leader_median_s, percentile(to_new_leader_s, 0.95) AS new_leader_p95_s,
       count(to_first_ack_s) AS acked,
       percentile(to_first_ack_s, 0.5) AS first_ack_median_s, percentile(to_first_ack_s, 0.95) AS first_ack_p95_s,
       count(to_first_ack_all_s) AS acked_all,
       percentile(to_first_ack_all_s, 0.5) AS first_ack_all_median_s,
       percentile(to_first_ack_all_s, 0.95) AS first_ack_all_p95_s
FROM {failovers}
GROUP BY era, fault, on_leader
ORDER BY era, fault, on_leader
"""


def failovers(runs: Runs) -> "DataFrame":
    """Returns each fault that had an effect, for each partition, with seconds to new leader and first ack.

    ``to_first_ack_all_s`` counts acks=all only. A time is null where there was no such event before the next fault on
    the leader, and ``to_new_leader_s`` also where the fault hit another node than the leader's.
    """
    return runs.sql(_EACH)


def failover_times(runs: Runs) -> "DataFrame":
    """Returns median and 95th percentile of these times by era, fault, and whether the node that led was hit.

    ``faults`` counts pairs of fault and partition; ``elected``, ``acked`` and ``acked_all`` those with such a time.
    """
    return runs.sql(_OVER_MANY, failovers=failovers(runs))
