"""Which moves a schedule prefers, on which clusters, with which times and limits."""
