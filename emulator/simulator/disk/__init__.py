"""The disk of a simulated broker: page cache, synced data, and the losses of a power loss."""
