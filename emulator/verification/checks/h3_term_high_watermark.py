"""H3 TermHW: within a leader's term the high watermark only rises."""

from emulator.verification.check import Check, Premise

CHECK = Check(
    check_id="H3",
    name="TermHW",
    premises=frozenset({Premise.HIGH_WATERMARK_MOVED}),
    query="""
        SELECT run, topic, partition, new AS position,
               concat(topic, '-', partition, ': broker ', node, ' in epoch ', leader_epoch, CASE
                      WHEN new <= old THEN concat(' moved its high watermark from ', old, ' back to ', new)
                      ELSE concat(' had its high watermark at ', before, ' and continued from ', old) END) AS sentence
        FROM (SELECT *, max(new) OVER (PARTITION BY run, topic_id, partition, node, incarnation, leader_epoch
                               ORDER BY sequence ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
              FROM high_watermark_advanced)
        WHERE new <= old OR old < before
    """,
)
