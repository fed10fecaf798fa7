"""The disk of a simulated broker: page cache, what is synced, and what a power loss takes."""
