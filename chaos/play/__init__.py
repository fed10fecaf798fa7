"""Plays scenarios: runs, steps, barriers and their evidence, for every driver."""
