"""Simulated cores with their drivers, batches and events, and virtual time."""
