"""The simulator: a whole cluster of real cores in one thread and virtual time."""
