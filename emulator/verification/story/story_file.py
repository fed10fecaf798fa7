"""``story.json``: written by verification, read by programs that draw a run."""

from pathlib import Path
from typing import Final

import msgspec

from laststand.emulator.verification.story.run import STORY_VERSION, RunStory
from laststand.emulator.verification.verdict.forms import read_form, write_whole

STORY_FILE: Final = "story.json"


def write_story(story: RunStory, directory: Path) -> None:
    """Writes ``story.json`` into the run's directory, whole or not at all.

    Raises:
        OSError: the file cannot be written.
    """
    write_whole(directory / STORY_FILE, msgspec.json.encode(story) + b"\n")


def read_story(directory: Path) -> RunStory:
    """Reads the story of a run.

    Raises:
        ConfigError: the run has no story, or one of another version.
    """
    return read_form(directory / STORY_FILE, RunStory, version=STORY_VERSION)
