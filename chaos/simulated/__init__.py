"""The driver for virtual time."""
