"""Reads the files of a run, each once: which files there are, their lines, their logs, their digests."""
