"""``story.json``: what pictures of a run need beside the verdict."""
