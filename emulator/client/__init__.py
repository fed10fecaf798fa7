"""The client process: all producers and consumers of a run, and the history that they write."""
