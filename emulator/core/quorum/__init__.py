"""Kafka's Raft: how controllers agree on one metadata log."""
