"""Plays scenarios: runs, steps, barriers and what they leave, for every driver."""
