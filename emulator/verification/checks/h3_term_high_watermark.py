"""H3 TermHW: within a term the high watermark only rises, and never past what every member of the ISR has."""

from emulator.verification.check import Check, CheckKind
from emulator.verification.high_watermark import least_log_end

# The leader's own log end is a field of its own.
_LEAST = least_log_end("array_except(maximal_isr, array(node))", "replicas")

CHECK = Check(
    check_id="H3",
    name="TermHW",
    kind=CheckKind.RULE,
    statement=(
        "Within one leader's term its high watermark does not go back, and does not pass the least log end that the "
        "leader knows of in the maximal ISR."
    ),
    query=f"""
        SELECT run, topic, partition, new AS position,
               concat(topic, '-', partition, ': broker ', node, ' in epoch ', leader_epoch, CASE
                      WHEN new <= old THEN concat(' moved its high watermark from ', old, ' back to ', new)
                      WHEN old < before THEN concat(' had its high watermark at ', before, ' and went on from ', old)
                      ELSE concat(' moved its high watermark to ', new, ', past ', bound,
                                  ', the least log end in its maximal ISR') END) AS sentence
        FROM (SELECT *, least({_LEAST}, log_end_offset) AS bound,
                     max(new) OVER (PARTITION BY run, topic_id, partition, node, incarnation, leader_epoch
                                    ORDER BY sequence ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
              FROM high_watermark_advanced)
        WHERE new <= old OR old < before OR new > bound
    """,
)
