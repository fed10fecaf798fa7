"""Parts that the verbs for a standing cluster share."""
