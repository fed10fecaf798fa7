"""The driver for real processes: observing them, sending requests, injecting and healing faults."""
