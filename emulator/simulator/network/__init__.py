"""What travels between nodes of a simulated cluster, and what can be done to it."""
