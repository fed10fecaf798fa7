"""What a check is.

A check is one query over the tables of ``reader`` and the views of ``facts``. A row is a finding::

    run INT, topic STRING, partition BIGINT, position BIGINT, sentence STRING

``position`` (an offset, epoch or metadata offset) orders the findings of a partition; ``sentence`` says in plain words
what is wrong, built from the row. No row means that the promise was kept in that run.
"""

from enum import Enum

import msgspec


class Evidence(Enum):
    """Without what a finding would prove nothing."""

    EVENTS = "events"
    HISTORY = "history"
    FINAL_LOGS = "final logs"


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """How one promise is judged.

    Attributes:
        check_id: of ``emulator.core.promises``, which has its kind, its statement and its switches.
        name: a word for it.
        needs: evidence that must be whole for a finding to count; otherwise the check is ``unknown``. A check that
            needs nothing judges each line for itself.
        query: Spark SQL, one row per finding.
    """

    check_id: str
    name: str
    needs: frozenset[Evidence] = frozenset()
    query: str
