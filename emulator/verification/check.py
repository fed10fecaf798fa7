"""What a check is.

A check is one query over the tables of ``reader`` and the views of ``facts``. A row is a finding::

    run INT, topic STRING, partition BIGINT, position BIGINT, sentence STRING

``position`` (an offset, epoch or metadata offset) orders the findings of a partition; ``sentence`` says in plain words
what is wrong, built from the row. No row means that the statement holds in that run.
"""

from enum import Enum

import msgspec


class CheckKind(Enum):
    """When a check is judged."""

    OUTCOME = "outcome"
    """In every era: users see it."""

    RULE = "rule"
    """Where the run's switches have the checked value: it restates a rule of the protocol."""


class Evidence(Enum):
    """Without what a finding would prove nothing."""

    EVENTS = "events"
    HISTORY = "history"
    FINAL_LOGS = "final logs"


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One statement about a run.

    Attributes:
        check_id: as in the list of invariants, such as ``D1``.
        name: a word for it.
        kind: outcome or rule.
        statement: what must hold, in plain words.
        needs: evidence that must be whole for a finding to count; otherwise the check is ``unknown``. A check that
            needs nothing judges each line for itself.
        query: Spark SQL, one row per finding.
    """

    check_id: str
    name: str
    kind: CheckKind
    statement: str
    needs: frozenset[Evidence] = frozenset()
    query: str
