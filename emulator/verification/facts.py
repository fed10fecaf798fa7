"""Facts that several checks ask for, as views over the tables of ``reader``.

- ``partition_state``: the controller's last word on each partition.
- ``change``: committed changes of partitions, each with the state before it (``old``) and whether the cluster had
  eligible leader replicas then (``has_elr``: the feature can be downgraded while the switch stays on).
- ``broker_status``: from which metadata offset to which a broker was active: registered, unfenced and not leaving.
- ``settled_leader``: the leader whose log decides what a partition holds at the end.
- ``leader_term``: each election whose winner took over as the process that was elected.
- ``leader_terms``: by partition, each broker that was elected, with its epoch and where its log ended when it took
  over.
- ``acked_batch``: every batch that a producer was told is in the log, with the epochs in which it was
  appended and acknowledged.
- ``final_copy``: which nodes hold a batch in their final logs.
- ``consumed_batch``: every batch that a consumer received, and the epoch of the leader that served it, if known.
- ``last_high_watermark``, ``required_isr``: see ``high_watermark``.
- ``lost_batch``: acknowledged batches that are not where they must be (see ``losses``).

A batch is identified by topic id, partition, base offset and CRC. Nothing here orders events of different nodes by
time: the controller's records are ordered by metadata offset, leaders by epoch, one node's events by its sequence.
"""

from typing import TYPE_CHECKING, Final

from emulator.verification.high_watermark import LAST_HIGH_WATERMARK, REQUIRED_ISR
from emulator.verification.losses import LOST_BATCH
from emulator.verification.reader import Scale, held

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PARTITION_STATE: Final = """
    SELECT run, topic_id, partition, state.* FROM (
        SELECT run, topic_id, partition,
               max_by(struct(topic, leader, leader_epoch, replicas, isr, elr, last_known_elr, last_known_leader,
                             effective_min_isr, adding_replicas, removing_replicas), metadata_offset) AS state
        FROM partition_changed GROUP BY run, topic_id, partition)
"""

# The last committed election that its winner acted on. It settles the partition only if the winner's process lived to
# an orderly end, and, where an election came after it (brokers that stop one by one), if the final consumer could read.
_SETTLED_LEADER: Final = """
    SELECT e.run, e.topic_id, e.partition, e.leader, e.leader_epoch
    FROM (SELECT c.run, c.topic_id, c.partition, max(c.leader_epoch) AS leader_epoch,
                 max_by(c.leader, c.leader_epoch) AS leader, max_by(b.incarnation, c.leader_epoch) AS incarnation
          FROM partition_changed c
          JOIN became_leader b ON b.run = c.run AND b.topic_id = c.topic_id AND b.partition = c.partition
               AND b.leader_epoch = c.leader_epoch AND b.node = c.leader
          GROUP BY c.run, c.topic_id, c.partition) e
    JOIN (SELECT run, node, max(incarnation) AS incarnation FROM node_started GROUP BY run, node) n
         ON n.run = e.run AND n.node = e.leader AND n.incarnation = e.incarnation
    JOIN partition_state s ON s.run = e.run AND s.topic_id = e.topic_id AND s.partition = e.partition
    JOIN node_directory d ON d.run = e.run AND d.node = e.leader
    LEFT JOIN incarnation_ended x
         ON x.run = e.run AND x.ended_node = e.leader AND x.ended_incarnation = e.incarnation AND x.end <> 'stopped'
    LEFT JOIN (SELECT DISTINCT run, topic, partition FROM final_read_operation WHERE type = 'ok') f
         ON f.run = e.run AND f.topic = s.topic AND f.partition = e.partition
    WHERE x.run IS NULL AND (f.run IS NOT NULL OR s.leader_epoch = e.leader_epoch)
"""

# Whoever acknowledged a batch has it in its own log: that copy tells the epoch in which it was appended. It may have
# been acknowledged in a later one, when the producer tried again; leaders elected in between need not have it. The
# leader's own answer names that epoch; what the client believed counts only where there is no such event. So with the
# topic id: a client may still believe in a topic that was deleted while it is answered for its successor.
_ACKED_BATCH: Final = """
    SELECT s.run, s.topic, s.partition, s.topic_id, s.base_offset, s.base_offset + s.record_count - 1 AS last_offset,
           s.crc, s.record_count, s.acks, s.operation_id, s.node, max(b.leader_epoch) AS leader_epoch,
           greatest(coalesce(max(p.leader_epoch), s.believed_epoch), max(b.leader_epoch)) AS acked_epoch
    FROM (SELECT o.run, o.topic, o.partition, coalesce(a.topic_id, o.topic_id, t.topic_id) AS topic_id, o.base_offset,
                 o.record_count, o.acks, o.operation_id, o.crc, o.node, o.leader_epoch AS believed_epoch
          FROM sent_batch o
          LEFT JOIN (SELECT run, topic, partition, node, base_offset, cause_id, max(topic_id) AS topic_id
                     FROM produce_answered WHERE error = 'NONE'
                     GROUP BY run, topic, partition, node, base_offset, cause_id) a
               ON a.run = o.run AND a.topic = o.topic AND a.partition = o.partition AND a.node = o.node
               AND a.base_offset = o.base_offset AND a.cause_id = o.operation_id
          LEFT JOIN (SELECT run, topic, partition, max(topic_id) AS topic_id FROM partition_state
                     GROUP BY run, topic, partition) t
               ON t.run = o.run AND t.topic = o.topic AND t.partition = o.partition
          WHERE o.type = 'ok' AND o.base_offset IS NOT NULL) s
    LEFT JOIN batch_appended b
         ON b.run = s.run AND b.topic_id = s.topic_id AND b.partition = s.partition
         AND b.base_offset = s.base_offset AND b.crc = s.crc AND b.node = s.node
    LEFT JOIN produce_answered p
         ON p.run = s.run AND p.topic_id = s.topic_id AND p.partition = s.partition AND p.node = s.node
         AND p.base_offset = s.base_offset AND p.cause_id = s.operation_id AND p.error = 'NONE'
    LEFT JOIN topic_deleted d ON d.run = s.run AND d.topic_id = s.topic_id
    WHERE d.run IS NULL
    GROUP BY s.run, s.topic, s.partition, s.topic_id, s.base_offset, s.crc, s.record_count, s.acks, s.operation_id,
             s.node, s.believed_epoch
"""

# A leader is elected as the process that is registered then. One that starts later and takes the role over before it is
# registered (eras without that rule) was never elected.
_LEADER_TERM: Final = """
    SELECT b.run, b.topic, b.topic_id, b.partition, b.leader_epoch, b.node, b.epoch_start_offset
    FROM became_leader b
    JOIN (SELECT n.run, n.node, n.incarnation, min(r.metadata_offset) AS registered
          FROM node_started n
          JOIN broker_registered r ON r.run = n.run AND r.broker_id = n.node AND r.incarnation_id = n.incarnation_id
          GROUP BY n.run, n.node, n.incarnation) r
         ON r.run = b.run AND r.node = b.node AND r.incarnation = b.incarnation
    LEFT JOIN (SELECT run, topic_id, partition, leader_epoch, min(metadata_offset) AS elected
               FROM partition_changed GROUP BY run, topic_id, partition, leader_epoch) c
         ON c.run = b.run AND c.topic_id = b.topic_id AND c.partition = b.partition AND c.leader_epoch = b.leader_epoch
    WHERE c.elected IS NULL OR r.registered < c.elected
"""

_LEADER_TERMS: Final = """
    SELECT run, topic_id, partition,
           collect_set(struct(leader_epoch, node, epoch_start_offset AS log_end_offset)) AS terms
    FROM leader_term GROUP BY run, topic_id, partition
"""

_FINAL_COPY: Final = """
    SELECT run, topic_id, partition, base_offset, crc, last_offset, collect_set(node) AS holders
    FROM final_batch GROUP BY run, topic_id, partition, base_offset, crc, last_offset
"""

_DELETED_BELOW: Final = """
    SELECT run, topic_id, partition, max(new) AS log_start_offset
    FROM log_start_offset_raised GROUP BY run, topic_id, partition
"""

_CONSUMED_BATCH: Final = """
    SELECT DISTINCT b.run, b.topic, b.partition, coalesce(b.topic_id, t.topic_id) AS topic_id, b.process,
           b.served_epoch, b.base_offset, b.last_offset, b.leader_epoch, b.crc, b.producer, b.first_record_id,
           b.record_count
    FROM received_batch b
    LEFT JOIN (SELECT run, topic, partition, max(topic_id) AS topic_id FROM partition_state
               GROUP BY run, topic, partition) t
         ON t.run = b.run AND t.topic = b.topic AND t.partition = b.partition
"""

_STATE: Final = (
    "leader, leader_epoch, partition_epoch, replicas, isr, elr, last_known_elr, last_known_leader, effective_min_isr, "
    "leader_recovery_state, adding_replicas, removing_replicas"
)

_CHANGE: Final = f"""
    SELECT c.*, f.run IS NULL AS has_elr
    FROM (SELECT *, lag(struct({_STATE})) OVER (
                     PARTITION BY run, topic_id, partition ORDER BY metadata_offset) AS old
          FROM partition_changed) c
    LEFT JOIN (SELECT run, feature_level, metadata_offset AS off_from, lead(metadata_offset) OVER (
                          PARTITION BY run ORDER BY metadata_offset) AS off_to
               FROM feature_changed WHERE name = 'eligible.leader.replicas.version') f
         ON f.run = c.run AND f.feature_level = 0 AND f.off_from < c.metadata_offset
         AND (f.off_to IS NULL OR c.metadata_offset < f.off_to)
"""

# A broker that was leaving stays inactive until it registers again, even if it is unfenced meanwhile.
_BROKER_STATUS: Final = f"""
    SELECT run, broker_id, metadata_offset AS active_from, coalesce(next_offset, {2**62}) AS active_to
    FROM (SELECT *, lead(metadata_offset) OVER (PARTITION BY run, broker_id ORDER BY metadata_offset) AS next_offset,
                 min(IF(kind = 'leaving', metadata_offset, NULL)) OVER (
                     PARTITION BY run, broker_id, broker_epoch) AS leaving_from
          FROM (SELECT run, broker_id, broker_epoch, metadata_offset, 'registered' AS kind FROM broker_registered
                UNION ALL SELECT run, broker_id, broker_epoch, metadata_offset, 'unfenced' FROM broker_unfenced
                UNION ALL SELECT run, broker_id, broker_epoch, metadata_offset, 'fenced' FROM broker_fenced
                UNION ALL SELECT run, broker_id, broker_epoch, metadata_offset, 'leaving'
                          FROM controlled_shutdown_started))
    WHERE kind = 'unfenced' AND (leaving_from IS NULL OR metadata_offset < leaving_from)
"""

_FACTS: Final = (
    ("change", _CHANGE),
    ("broker_status", _BROKER_STATUS),
    ("partition_state", _PARTITION_STATE),
    ("settled_leader", _SETTLED_LEADER),
    ("leader_term", _LEADER_TERM),
    ("leader_terms", _LEADER_TERMS),
    ("acked_batch", _ACKED_BATCH),
    ("final_copy", _FINAL_COPY),
    ("deleted_below", _DELETED_BELOW),
    ("consumed_batch", _CONSUMED_BATCH),
    ("last_high_watermark", LAST_HIGH_WATERMARK),
    ("required_isr", REQUIRED_ISR),
    ("lost_batch", LOST_BATCH),
)
"""In the order of their dependence."""

_USED_OFTEN: Final = frozenset(
    {"change", "leader_term", "partition_state", "settled_leader", "acked_batch", "lost_batch"}
)


def define_facts(spark: "SparkSession", scale: Scale) -> None:
    """Defines the views; the tables must be loaded."""
    for name, query in _FACTS:
        frame = spark.sql(query)
        (held(frame, scale) if name in _USED_OFTEN else frame).createOrReplaceTempView(name)
