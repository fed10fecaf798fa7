"""Laststand: a multi-process emulator of Kafka's replication protocol, and the oracle that judges it."""
