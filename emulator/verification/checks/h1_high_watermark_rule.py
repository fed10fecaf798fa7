"""H1 HWRule: a high watermark never passes what every member of the maximal ISR has (KIP-497)."""

from emulator.verification.check import Check, Premise
from emulator.verification.high_watermark import least_log_end

# The leader's own log end is a field of its own.
_LEAST = least_log_end("array_except(maximal_isr, array(node))", "replicas")

CHECK = Check(
    check_id="H1",
    name="HWRule",
    premises=frozenset({Premise.HIGH_WATERMARK_MOVED}),
    query=f"""
        SELECT run, topic, partition, new AS position,
               concat(topic, '-', partition, ': broker ', node, ' in epoch ', leader_epoch, ' moved its high ',
                      'watermark to ', new, ', past ', bound, ', the least log end in its maximal ISR') AS sentence
        FROM (SELECT *, least({_LEAST}, log_end_offset) AS bound FROM high_watermark_advanced)
        WHERE new > bound
    """,
)
