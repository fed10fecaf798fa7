"""Plans of the simulator as scenarios for real processes, in which barriers keep the order of actions."""
