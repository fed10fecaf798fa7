"""What acks 0, 1 and all are worth while the ISR is below the minimum: KIP-966's 'Ack=0/1 comparison', measured.

A scenario asks for it with ``report: acks-comparison``. Everything is counted from the run's events: an answer to a
producer carries the committed ISR as the leader knew it, and so does each advance of a high watermark; a batch that
was accepted under such an ISR was *read* if a live consumer received it in the same leader epoch, and that leader did
not commit it with enough members later on. Nothing is taken from what an era is supposed to do.
"""

from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REPORT: Final = "acks-comparison"
"""How a scenario asks for it."""


class AcksMeasure(msgspec.Struct, frozen=True, kw_only=True):
    """Records of one acks level while the committed ISR was below the minimum.

    Attributes:
        acks: -1 (all), 0 or 1.
        accepted: appended and, but for acks=0, acknowledged.
        refused: answered with an error, attempt by attempt.
        read: of those accepted, what reached a consumer before the ISR was large enough again or another leader came.
        high_watermark_advance: how far the high watermarks of these topics moved meanwhile, in records.
    """

    acks: int
    accepted: int
    refused: int
    read: int
    high_watermark_advance: int


class Return(msgspec.Struct, frozen=True, kw_only=True):
    """How a partition that had lost its last leader got one again."""

    acks: int
    topic: str
    partition: int
    leader: int
    leader_epoch: int
    election: str
    log_end_offset: int | None


class AcksComparison(msgspec.Struct, frozen=True, kw_only=True):
    """One run's part of the comparison; topics are told apart by the acks of their producers."""

    measures: tuple[AcksMeasure, ...]
    returns: tuple[Return, ...]


_LEVEL: Final = "SELECT run, topic, max(acks) AS acks FROM sent_batch GROUP BY run, topic HAVING min(acks) = max(acks)"

_BELOW: Final = """
    SELECT p.run, p.topic, p.partition, p.acks, p.leader_epoch, p.base_offset, p.record_count, p.error = 'NONE' AS is_ok
    FROM produce_answered p
    JOIN required_isr m ON m.run = p.run AND m.topic_id = p.topic_id AND m.partition = p.partition
    WHERE size(p.committed_isr) < m.required_isr
          AND p.error IN ('NONE', 'NOT_ENOUGH_REPLICAS', 'NOT_ENOUGH_REPLICAS_AFTER_APPEND')
"""

# How far a leader got with enough members after all: what lies below was not read while the ISR was too small.
_COMMITTED: Final = """
    SELECT h.run, h.topic, h.partition, h.leader_epoch, max(h.new) AS new
    FROM high_watermark_advanced h
    JOIN required_isr m ON m.run = h.run AND m.topic_id = h.topic_id AND m.partition = h.partition
         AND size(h.committed_isr) >= m.required_isr
    GROUP BY h.run, h.topic, h.partition, h.leader_epoch
"""

_MEASURES: Final = f"""
    WITH level AS ({_LEVEL}), below AS ({_BELOW}), committed AS ({_COMMITTED})
    SELECT l.run, l.acks, coalesce(max(b.accepted), 0) AS accepted, coalesce(max(b.refused), 0) AS refused,
           coalesce(max(r.records), 0) AS read, coalesce(max(h.advance), 0) AS high_watermark_advance
    FROM level l
    LEFT JOIN (SELECT run, acks, sum(IF(is_ok, record_count, 0)) AS accepted, sum(IF(is_ok, 0, record_count)) AS refused
               FROM below GROUP BY run, acks) b ON b.run = l.run AND b.acks = l.acks
    LEFT JOIN (SELECT b.run, b.acks, sum(b.record_count) AS records
               FROM below b
               JOIN (SELECT DISTINCT run, topic, partition, served_epoch, base_offset FROM received_batch
                     WHERE phase = 'live') c
                    ON c.run = b.run AND c.topic = b.topic AND c.partition = b.partition
                    AND c.base_offset = b.base_offset AND c.served_epoch = b.leader_epoch
               LEFT ANTI JOIN committed h ON h.run = b.run AND h.topic = b.topic AND h.partition = b.partition
                    AND h.leader_epoch = b.leader_epoch AND h.new > b.base_offset
               WHERE b.is_ok GROUP BY b.run, b.acks) r ON r.run = l.run AND r.acks = l.acks
    LEFT JOIN (SELECT h.run, l.acks, sum(h.new - h.old) AS advance
               FROM high_watermark_advanced h
               JOIN required_isr m ON m.run = h.run AND m.topic_id = h.topic_id AND m.partition = h.partition
                    AND size(h.committed_isr) < m.required_isr
               JOIN level l ON l.run = h.run AND l.topic = h.topic
               GROUP BY h.run, l.acks) h ON h.run = l.run AND h.acks = l.acks
    GROUP BY l.run, l.acks
"""

_RETURNS: Final = f"""
    WITH level AS ({_LEVEL})
    SELECT c.run, l.acks, c.topic, c.partition, c.leader, c.leader_epoch, c.election,
           b.epoch_start_offset AS log_end_offset
    FROM change c
    JOIN level l ON l.run = c.run AND l.topic = c.topic
    LEFT JOIN became_leader b ON b.run = c.run AND b.topic_id = c.topic_id AND b.partition = c.partition
         AND b.leader_epoch = c.leader_epoch AND b.node = c.leader
    WHERE c.old IS NOT NULL AND c.old.leader IS NULL AND c.leader IS NOT NULL
"""


_Row = TypeVar("_Row", AcksMeasure, Return)


def compare_acks(run: int, *, spark: "SparkSession") -> AcksComparison:
    """Measures one of the runs that are loaded, by its number."""
    return AcksComparison(
        measures=_ask(f"SELECT * FROM ({_MEASURES}) WHERE run = {run} ORDER BY acks", AcksMeasure, spark),
        returns=_ask(
            f"SELECT * FROM ({_RETURNS}) WHERE run = {run} ORDER BY topic, partition, leader_epoch", Return, spark
        ),
    )


def _ask(query: str, kind: type[_Row], spark: "SparkSession") -> tuple[_Row, ...]:
    names = kind.__struct_fields__
    return tuple(kind(**{name: row[name] for name in names}) for row in spark.sql(query).collect())
