"""From a seed to a schedule, from many seeds to a sweep, from a finding to a shorter plan."""
