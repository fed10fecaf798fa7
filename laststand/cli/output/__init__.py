"""What verbs print: results, listings, progress, pages."""
