"""Facts that several checks ask for, as views over the tables of ``reader``.

- ``partition_state``: the controller's last word on each partition.
- ``settled_leader``: the leader whose log decides what a partition holds at the end.
- ``acked_batch``: every batch that a producer was told is in the log, with the epoch in which it was appended.
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
                             effective_min_isr), metadata_offset) AS state
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
# been acknowledged in a later one, when the producer tried again; leaders elected in between need not have it.
_ACKED_BATCH: Final = """
    SELECT s.run, s.topic, s.partition, s.topic_id, s.base_offset, s.base_offset + s.record_count - 1 AS last_offset,
           s.crc, s.record_count, s.acks, s.operation_id, s.node, max(b.leader_epoch) AS leader_epoch,
           greatest(s.acked_epoch, max(b.leader_epoch)) AS acked_epoch
    FROM (SELECT o.run, o.topic, o.partition, coalesce(o.topic_id, t.topic_id) AS topic_id, base_offset,
                 record_count, acks, operation_id, element_at(attempts, -1).crc AS crc,
                 element_at(attempts, -1).node AS node, element_at(attempts, -1).leader_epoch AS acked_epoch
          FROM send_operation o
          LEFT JOIN (SELECT run, topic, partition, max(topic_id) AS topic_id FROM partition_state
                     GROUP BY run, topic, partition) t
               ON t.run = o.run AND t.topic = o.topic AND t.partition = o.partition
          WHERE type = 'ok' AND base_offset IS NOT NULL) s
    LEFT JOIN batch_appended b
         ON b.run = s.run AND b.topic_id = s.topic_id AND b.partition = s.partition
         AND b.base_offset = s.base_offset AND b.crc = s.crc AND b.node = s.node
    LEFT JOIN topic_deleted d ON d.run = s.run AND d.topic_id = s.topic_id
    WHERE d.run IS NULL
    GROUP BY s.run, s.topic, s.partition, s.topic_id, s.base_offset, s.crc, s.record_count, s.acks, s.operation_id,
             s.node, s.acked_epoch
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
    SELECT DISTINCT o.run, o.topic, o.partition, coalesce(o.topic_id, t.topic_id) AS topic_id, o.process,
           o.served_epoch, batch.*
    FROM (SELECT run, topic, partition, topic_id, process, leader_epoch AS served_epoch, explode(batches) AS batch
          FROM poll_operation) o
    LEFT JOIN (SELECT run, topic, partition, max(topic_id) AS topic_id FROM partition_state
               GROUP BY run, topic, partition) t
         ON t.run = o.run AND t.topic = o.topic AND t.partition = o.partition
"""

_FACTS: Final = (
    ("partition_state", _PARTITION_STATE),
    ("settled_leader", _SETTLED_LEADER),
    ("acked_batch", _ACKED_BATCH),
    ("final_copy", _FINAL_COPY),
    ("deleted_below", _DELETED_BELOW),
    ("consumed_batch", _CONSUMED_BATCH),
    ("last_high_watermark", LAST_HIGH_WATERMARK),
    ("required_isr", REQUIRED_ISR),
    ("lost_batch", LOST_BATCH),
)
"""In the order of their dependence."""

_USED_OFTEN: Final = frozenset({"partition_state", "settled_leader", "acked_batch", "lost_batch"})


def define_facts(spark: "SparkSession", scale: Scale) -> None:
    """Defines the views; the tables must be loaded."""
    for name, query in _FACTS:
        frame = spark.sql(query)
        (held(frame, scale) if name in _USED_OFTEN else frame).createOrReplaceTempView(name)
