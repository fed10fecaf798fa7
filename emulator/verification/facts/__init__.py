"""Facts of a run, of its cluster and of each partition, and what several checks derive from them."""
