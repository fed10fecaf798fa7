"""Profiles: weights of a schedule's moves, clusters, times and limits."""
