"""Speaks Kafka's protocol to clients that others wrote: frames in, requests of the core, answers out."""
