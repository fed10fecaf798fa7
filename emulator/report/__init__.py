"""Pictures of a run: ``report.html``, and the same as text."""
