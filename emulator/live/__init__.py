"""A page on loopback that shows a cluster while it runs, and does to it what is clicked."""
