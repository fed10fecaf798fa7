"""C3 ClientHW: what was committed to a reader stays committed: nobody is sent back."""

from emulator.verification.check import Check, CheckKind

CHECK = Check(
    check_id="C3",
    name="ClientHW",
    kind=CheckKind.OUTCOME,
    statement="No consumer that has read up to an offset is told later that the log ends before it.",
    query="""
        SELECT run, topic, partition, position,
               concat(process, ' on ', topic, '-', partition, ' had read up to ', before.position,
                      ', was told OFFSET_OUT_OF_RANGE and went on from ', position) AS sentence
        FROM (SELECT *, lag(struct(position, error)) OVER (
                         PARTITION BY run, process, topic, partition ORDER BY index) AS before
              FROM poll WHERE phase = 'live')
        WHERE seek AND before.error = 'OFFSET_OUT_OF_RANGE' AND position < before.position
    """,
)
