"""Random chaos on real processes; ``README.md`` lists the modules."""
