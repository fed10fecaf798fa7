"""Moves: the possible next actions of a schedule; each move draws its choices and returns actions."""
