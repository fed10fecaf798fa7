"""Judges a large run in slices: many tasks read it, one task judges each partition."""
