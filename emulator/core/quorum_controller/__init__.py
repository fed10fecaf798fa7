"""The controller on top of the metadata quorum: which node is active, its state, and which decisions are committed."""
