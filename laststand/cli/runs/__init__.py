"""Playing and judging runs, and where their directories are."""
