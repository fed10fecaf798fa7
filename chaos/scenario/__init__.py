"""Scenarios, and how their files are read."""
