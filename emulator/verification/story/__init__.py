"""``story.json``: the data that pictures of a run need beside the verdict."""
