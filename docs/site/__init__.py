"""Builds the static site from the documents of this repository."""
