"""Faults, one per file. Each checks that it took effect, and reports a no-op where it did not."""
