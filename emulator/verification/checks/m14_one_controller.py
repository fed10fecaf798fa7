"""M14 OneController: a metadata offset stands for one record, whichever controller process reports it."""

from emulator.verification.check import Check, Premise

CHECK = Check(
    check_id="M14",
    name="OneController",
    premises=frozenset({Premise.TWO_CONTROLLERS}),
    query="""
        SELECT run, '' AS topic, 0 AS partition, metadata_offset AS position,
               concat('metadata offset ', metadata_offset, ' stands for ',
                      array_join(sort_array(collect_set(what)), ' and for ')) AS sentence
        FROM (SELECT run, metadata_offset, node, incarnation, concat('a change of ', topic, '-', partition) AS what
              -- A cleared ELR is one record about many partitions.
              FROM partition_changed WHERE reason NOT IN ('min_isr_changed', 'features_changed')
              UNION ALL SELECT run, metadata_offset, node, incarnation, concat('a registration of broker ', broker_id)
              FROM broker_registered
              UNION ALL SELECT run, metadata_offset, node, incarnation, concat('the fencing of broker ', broker_id)
              FROM broker_fenced
              UNION ALL SELECT run, metadata_offset, node, incarnation, concat('the unfencing of broker ', broker_id)
              FROM broker_unfenced
              UNION ALL SELECT run, metadata_offset, node, incarnation, concat('the end of topic ', topic)
              FROM topic_deleted
              UNION ALL SELECT run, metadata_offset, node, incarnation, concat('another ', name) FROM config_changed)
        GROUP BY run, metadata_offset HAVING count(DISTINCT node, incarnation) > 1 AND count(DISTINCT what) > 1
    """,
)
