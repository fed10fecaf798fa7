"""C3 ClientHW: the log end that consumers are told does not go back."""

from emulator.verification.check import Check, Premise

CHECK = Check(
    check_id="C3",
    name="ClientHW",
    premises=frozenset({Premise.POLLED_AGAIN}),
    query="""
        SELECT run, topic, partition, position,
               concat(process, ' on ', topic, '-', partition, ' had read up to ', read_up_to,
                      ', was told OFFSET_OUT_OF_RANGE and went on from ', position) AS sentence
        FROM (SELECT *, lag(error) OVER (
                         PARTITION BY run, process, topic, topic_id, partition ORDER BY index) AS before,
                     max(IF(size(spans) > 0, element_at(spans, -1)[1] + 1, NULL)) OVER (
                         PARTITION BY run, process, topic, topic_id, partition ORDER BY index
                         ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS read_up_to
              FROM poll WHERE phase = 'live')
        WHERE seek AND before = 'OFFSET_OUT_OF_RANGE' AND position < read_up_to
    """,
)
