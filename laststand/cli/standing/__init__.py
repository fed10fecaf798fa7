"""What the verbs for a standing cluster share."""
