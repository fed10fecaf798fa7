"""A page on loopback that shows a cluster while it runs, and performs the actions that are clicked."""
