"""Output of verbs: results, listings, progress, pages."""
