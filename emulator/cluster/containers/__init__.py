"""Nodes in containers: the same processes, started, paused and killed through a Docker engine."""
