"""Reasons why a run proves nothing: files that are missing or altered, and accounts that disagree."""
