"""Coordinators in general: state machines over partitions of an internal topic that a broker leads."""
