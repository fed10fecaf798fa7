"""Coordinators of consumer groups: state machines over the partitions of ``__consumer_offsets`` that a broker leads."""
