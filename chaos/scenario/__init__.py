"""What a scenario says, and how it is read."""
