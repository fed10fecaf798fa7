"""The controller on top of the metadata quorum: which node decides, on which state, and what of it counts."""
