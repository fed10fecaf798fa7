"""Real processes behind a run: how they are watched, asked, broken and mended."""
