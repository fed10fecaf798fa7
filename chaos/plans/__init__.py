"""Plans of the simulator as scenarios: what each action is on real processes, and in which order, kept by barriers."""
