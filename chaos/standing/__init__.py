"""A standing cluster: one supervisor process owns it, and records everything that is done to it."""
