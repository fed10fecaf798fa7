"""Faults, scenarios and the runner that plays them against a cluster."""
