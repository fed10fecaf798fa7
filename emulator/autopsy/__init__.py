"""Reads the replicas of a real cluster from copies of their log directories: ``laststand autopsy``."""
