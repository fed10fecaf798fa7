"""C1 ConsumerOrder: a consumer's offsets rise by one, without skip or repeat, until it seeks."""

from emulator.verification.check import Check, CheckKind

CHECK = Check(
    check_id="C1",
    name="ConsumerOrder",
    kind=CheckKind.OUTCOME,
    statement="Between two seeks a consumer receives each offset of a partition once, in order, without a gap.",
    query="""
        WITH poll AS (
            SELECT *, lag(next_position) OVER (
                       PARTITION BY run, process, topic, partition ORDER BY index) AS expected
            FROM (SELECT run, process, topic, partition, index, position, seek, batches,
                         coalesce(element_at(batches, -1).last_offset + 1, position) AS next_position
                  FROM (SELECT run, process, topic, partition, index, position, seek,
                               IF(size(batches) > 0, batches, NULL) AS batches FROM poll_operation)))
        SELECT run, topic, partition, position, concat(process, ' on ', topic, '-', partition, ' ', problem) AS sentence
        FROM (SELECT run, process, topic, partition, position, CASE
                  WHEN NOT seek AND expected < position
                      THEN concat('skipped offsets ', expected, '-', position - 1)
                  WHEN NOT seek AND expected > position
                      THEN concat('went back from offset ', expected, ' to ', position, ' without a seek')
                  WHEN batches[0].base_offset > position
                      THEN concat('asked for offset ', position, ' and got ', batches[0].base_offset)
                  WHEN batches[0].last_offset < position
                      THEN concat('asked for offset ', position, ' and got a batch up to ', batches[0].last_offset)
                  WHEN size(batches) > 1 AND exists(sequence(1, size(batches) - 1),
                          i -> batches[i].base_offset <> batches[i - 1].last_offset + 1)
                      THEN concat('got batches from offset ', position, ' on that do not follow each other: ',
                                  array_join(transform(batches, b -> concat(b.base_offset, '-', b.last_offset)), ', '))
              END AS problem FROM poll)
        WHERE problem IS NOT NULL
    """,
)
