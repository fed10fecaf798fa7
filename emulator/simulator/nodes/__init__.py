"""Cores with what surrounds them, their batches and events, and virtual time."""
