"""The driver for a cluster that somebody else runs: it speaks Kafka's protocol, and runs the user's commands."""
