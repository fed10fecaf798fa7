"""Checks of a simulated cluster, made from outside the core."""
