"""Benchmarks: what a start, a record, a failover and a verdict cost. ``python -m benchmarks [NAME]``."""
