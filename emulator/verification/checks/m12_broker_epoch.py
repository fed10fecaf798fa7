"""M12 BrokerEpoch: each registration of a broker gets an epoch of its own, higher than all before."""

from emulator.verification.check import Check, Premise

CHECK = Check(
    check_id="M12",
    name="BrokerEpoch",
    premises=frozenset({Premise.TWO_REGISTRATIONS}),
    query="""
        SELECT run, '' AS topic, 0 AS partition, metadata_offset AS position,
               concat('broker ', broker_id, ' was registered at metadata offset ', metadata_offset, ' under epoch ',
                      broker_epoch, IF(broker_epoch <= before, concat(', after epoch ', before),
                      ', which another registration has as well')) AS sentence
        FROM (SELECT *, lag(broker_epoch) OVER (PARTITION BY run, broker_id ORDER BY metadata_offset) AS before,
                     count(*) OVER (PARTITION BY run, broker_epoch) AS holders
              FROM broker_registered)
        WHERE broker_epoch <= before OR holders > 1
    """,
)
