"""Actions on a cluster: one vocabulary with its notations, for every driver."""
