"""What can be done to a cluster: one vocabulary of actions, with its notations, for every driver."""
