"""Pictures of a run: ``report.html``, and a text version."""
