"""A cluster that stands until it is told to end: one supervisor process owns it and records whatever is done to it."""
