"""Verbs' work in Spark: runs as tables, queries, sweeps."""
