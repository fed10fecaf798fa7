"""Outcome of the records that producers sent, by acks: acknowledged, failed, unknown, and acknowledged but lost."""

from typing import TYPE_CHECKING, Final

from laststand.emulator.analysis.runs import Runs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_QUERY: Final = """
WITH sent AS (
    SELECT run, scenario, era, seed, acks, sum(record_count) AS sent,
           sum(if(outcome = 'ok', record_count, 0)) AS acknowledged,
           sum(if(outcome = 'fail', record_count, 0)) AS failed,
           sum(if(outcome = 'info', record_count, 0)) AS unknown
    FROM history WHERE kind = 'send'
    GROUP BY run, scenario, era, seed, acks
), lost AS (
    SELECT run, acks, sum(record_count) AS lost FROM lost_records GROUP BY run, acks
)
SELECT run, scenario, era, seed, acks, sent, acknowledged, sent - acknowledged AS unacknowledged, failed, unknown,
       if(acks = 0, NULL, coalesce(lost, 0)) AS lost
FROM sent LEFT JOIN lost USING (run, acks)
ORDER BY run, acks
"""


def acks_outcomes(runs: Runs) -> "DataFrame":
    """Returns records by run and acks.

    ``unacknowledged`` is ``failed`` (certainly not done) and ``unknown`` together. ``lost`` counts acknowledged records
    that are not where they must be; null for acks=0, whose offsets are not known.
    """
    return runs.sql(_QUERY)
