"""The driver for a cluster that another party runs: it speaks Kafka's protocol, and runs the user's commands."""
