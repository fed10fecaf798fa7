"""Names of topics that are Kafka's own (Kafka's ``Topic``)."""

from typing import Final

INTERNAL_TOPICS: Final = frozenset({"__consumer_offsets", "__transaction_state"})
"""Topics that clients may read, and only the broker writes."""
