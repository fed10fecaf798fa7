"""``story.json``: the data, besides the verdict, that pictures of a run need."""
