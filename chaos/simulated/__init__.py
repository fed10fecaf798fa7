"""Virtual time behind a run."""
