"""The driver for a cluster that somebody else runs: spoken to in Kafka's protocol, broken by commands of the user's."""
