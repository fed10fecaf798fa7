"""C1 ConsumerOrder: a consumer's offsets rise by one, without skip or repeat, until it seeks."""

from emulator.verification.check import Check, Premise

CHECK = Check(
    check_id="C1",
    name="ConsumerOrder",
    premises=frozenset({Premise.CONSUMED}),
    query="""
        WITH ordered AS (
            SELECT *, lag(next_position) OVER (
                       PARTITION BY run, process, topic, partition ORDER BY index) AS expected
            FROM (SELECT *, IF(size(spans) > 0, element_at(spans, -1)[1] + 1, position) AS next_position FROM poll))
        SELECT run, topic, partition, position, concat(process, ' on ', topic, '-', partition, ' ', problem) AS sentence
        FROM (SELECT run, process, topic, partition, position, CASE
                  WHEN NOT seek AND expected < position
                      THEN concat('skipped offsets ', expected, '-', position - 1)
                  WHEN NOT seek AND expected > position
                      THEN concat('went back from offset ', expected, ' to ', position, ' without a seek')
                  WHEN spans[0][0] > position
                      THEN concat('asked for offset ', position, ' and got ', spans[0][0])
                  WHEN spans[0][1] < position
                      THEN concat('asked for offset ', position, ' and got a batch up to ', spans[0][1])
                  WHEN size(spans) > 1 AND exists(sequence(1, size(spans) - 1),
                          i -> spans[i][0] <> spans[i - 1][1] + 1)
                      THEN concat('got batches from offset ', position, ' on that do not follow each other: ',
                                  array_join(transform(spans, s -> concat(s[0], '-', s[1])), ', '))
              END AS problem FROM ordered)
        WHERE problem IS NOT NULL
    """,
)
