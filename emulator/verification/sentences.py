"""Pieces of SQL that turn columns into words."""


def listed(column: str) -> str:
    """SQL for a list of brokers: ``[1, 2]``."""
    return f"concat('[', array_join(CAST({column} AS ARRAY<STRING>), ', '), ']')"


def span(first: str, last: str) -> str:
    """SQL for inclusive offsets: ``offset 7`` or ``offsets 0-9``."""
    return f"IF({first} = {last}, concat('offset ', {first}), concat('offsets ', {first}, '-', {last}))"


def broker(column: str) -> str:
    """SQL for a broker or its absence."""
    return f"coalesce(concat('broker ', {column}), 'no broker')"
